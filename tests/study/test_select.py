import itertools
from math import nan

import numpy as np
import pandas as pd
import pytest

from openima.errors import InputError
from openima.study.select import RULES, choose, chosen_rows


def table(sc: list[float], acc: list[float], trial: str | list[str] = "t") -> pd.DataFrame:
    frame = pd.DataFrame({"trial": trial, "sc": sc, "val_acc": acc, "all": np.arange(len(sc))})
    return frame.assign(epoch=frame.groupby("trial").cumcount() + 1)


def by_hand(rows: pd.DataFrame, weight: float) -> int:
    """Score every row by the formula, with loops."""
    scores = []
    for i in range(len(rows)):
        score = 0.0
        for name, share in (("sc", weight), ("val_acc", 1 - weight)):
            values = list(rows[name])
            low, high = min(values), max(values)
            score += share * (0.0 if high == low else (values[i] - low) / (high - low))
        scores.append(score)
    return max(range(len(scores)), key=lambda i: (round(scores[i], 12), i))


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.5, 1.0])
def test_sc_and_acc_is_the_formula_over_all_epochs_and_configurations(weight: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        sc, acc = rng.normal(size=(2, 12)).round(1).tolist()
        rows = table(sc, acc, ["a"] * 6 + ["b"] * 6)
        assert choose(rows, "sc_and_acc", weight) == by_hand(rows, weight)


def test_minimum_and_maximum_are_over_all_configurations() -> None:
    """Within each configuration alone, the first row would win."""
    rows = table([0.0, 1.0, 0.9, 10.0], [0.0, 1.0, 5.0, 0.0], ["a", "a", "b", "b"])
    assert choose(rows.iloc[:2]) == 1
    assert choose(rows) == by_hand(rows, 0.5) == 2


def test_sc_or_acc_alone() -> None:
    rows = table([0.3, 0.9, 0.1], [0.2, 0.1, 0.8])
    assert choose(rows, "sc") == 1
    assert choose(rows, "acc") == 2


def test_the_last_epoch_is_that_of_the_configuration_preferred_there() -> None:
    rows = table([0.9, 0.1, 0.5, 0.2], [0.9, 0.5, 0.1, 0.6], ["a", "a", "b", "b"])
    assert choose(rows, "last") == 3
    assert choose(rows.iloc[:2], "last") == 1


def test_the_oracle_looks_at_the_truth() -> None:
    rows = table([0.3, 0.9, 0.1], [0.2, 0.1, 0.8]).assign(all=[0.4, 0.2, 0.3])
    assert choose(rows, "oracle") == 0


@pytest.mark.parametrize("rule", RULES)
def test_edge_cases(rule: str) -> None:
    assert choose(table([-0.2], [0.5]), rule) == 0
    assert choose(table([nan], [nan]), rule) == 0
    same = table([0.2] * 3, [0.5] * 3).assign(all=0.1)
    assert choose(same, rule) == 2
    with pytest.raises(InputError, match="no row to choose from"):
        choose(table([], []), rule)


def test_negative_silhouettes_and_missing_numbers() -> None:
    assert choose(table([-0.9, -0.1, -0.5], [0.5] * 3)) == 1
    assert choose(table([nan, -0.5, -0.7], [0.5, 0.5, 0.5])) == 1
    assert choose(table([0.1, 0.1], [nan, 0.2])) == 1


def test_one_row_is_chosen_in_each_group() -> None:
    parts = [
        table([0.1, 0.2], [0.1, 0.2]).assign(dataset=d, seed=s)
        for d, s in itertools.product("ab", (1, 2))
    ]
    chosen = chosen_rows(pd.concat(parts), ["dataset", "seed"], "sc")
    assert list(zip(chosen["dataset"], chosen["seed"], chosen["epoch"], strict=True)) == [
        ("a", 1, 2),
        ("a", 2, 2),
        ("b", 1, 2),
        ("b", 2, 2),
    ]
    assert len(chosen_rows(parts[0].iloc[:0], ["dataset", "seed"])) == 0


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(InputError, match="no rule 'best'"):
        choose(table([0.1], [0.1]), "best")
