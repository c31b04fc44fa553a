from copy import deepcopy
from typing import Any

import pytest

from openima.errors import InputError
from openima.study import trial as module
from openima.study.trial import Trial, canonical


def trial(**changes: Any) -> Trial:
    return Trial("photo", "openima", 3, changes)


def test_equal_content_has_one_id_and_other_content_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = trial()
    assert usual.id == trial(eta=10.0).id == trial(eta=10).id  # the paper's for photo
    others = [
        trial(eta=20.0),
        Trial("computers", "openima", 3),
        Trial("photo", "openima-no-ce", 3),
        Trial("photo", "openima", 4),
    ]
    monkeypatch.setattr(module, "code_version", lambda _: "another")
    others.append(trial())
    assert len({usual.id, *(other.id for other in others)}) == 6


def test_the_recipe_has_the_settings_of_paper_trial_and_seed() -> None:
    recipe = trial(pseudo_share=0.5).recipe
    assert (recipe.config.eta, recipe.config.pseudo_share, recipe.train.seed) == (10.0, 0.5, 3)
    assert trial().settings["eta"] == 10
    assert not {"seed", "device"} & set(trial().settings)


def test_a_wrong_setting_is_refused() -> None:
    with pytest.raises(InputError, match="no setting 'etta'"):
        print(trial(etta=1.0).id)


def test_goes_to_another_process_and_back() -> None:
    """Copies are made as for another process: of what was asked for alone."""
    original = trial(eta=20.0)
    assert original.settings
    copy = deepcopy(original)
    assert "settings" not in vars(copy)
    assert copy.id == original.id


def test_rows_of_code_without_a_setting_are_rows_of_a_trial_that_does_not_change_it() -> None:
    old = dict(trial().settings)
    del old["pseudo_share"]
    assert trial().wants(old)
    assert not trial(pseudo_share=0.5).wants(old)
    assert not trial(eta=20.0).wants(old)
    assert trial().wants({**old, "gone": 1})


def test_equal_values_are_written_alike() -> None:
    assert canonical({"b": (1.0, 2.5), "a": True}) == canonical({"a": True, "b": [1, 2.5]})
    assert canonical(0.1) == "0.1"
