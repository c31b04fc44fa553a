"""Hidden labels must not change what is predicted: scramble them and compare byte for byte.

Each test has its counterpart: where a label may be used, changing it does change the outcome,
so the comparison can fail.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from openima.graph.task import Task
from openima.methods import Recipe, get_recipe, recipes
from openima.predict.rejection import RULES
from openima.train.trainer import TrainResult, train

Tiny = Callable[..., Recipe]
Settings = dict[str, object]
every_recipe = pytest.mark.parametrize("name", sorted(recipes()))
DETECTORS = [name for name, recipe in sorted(recipes().items()) if recipe.kind == "detector"]


def aligns(recipe: Recipe) -> bool:
    """Whether the method's settings say that it may look at validation labels."""
    return hasattr(recipe.config, "align_on")


def fit(task: Task, recipe: Recipe) -> TrainResult:
    return train(task, recipe, progress=False)


def outcome(result: TrainResult) -> tuple[bytes, ...]:
    """Everything that is learned or predicted, epoch by epoch, as bytes."""
    look = result.snapshot
    state = {**result.encoder.state_dict(), **result.objective.state_dict()}
    parts = [look.z, look.logits, result.groups, *(tensor.numpy() for tensor in state.values())]
    return tuple(b"" if part is None else part.tobytes() for part in parts)


def scrambled(task: Task, nodes: NDArray[np.int64]) -> Task:
    """The same task with the truth of `nodes`, and their labels where they have one, mixed up."""
    assert task.truth is not None
    rng = np.random.default_rng(0)
    truth, labels = task.truth.copy(), task.labels.copy()
    truth[nodes] = rng.permutation(truth[nodes])
    labels[nodes] = np.where(labels[nodes] >= 0, rng.permutation(labels[nodes]), -1)
    assert (truth != task.truth).any()
    return replace(task, truth=truth, labels=labels)


@every_recipe
def test_labels_of_test_nodes_change_nothing(
    tiny_task: Task, tiny: Tiny, neighbours: Settings, name: str
) -> None:
    recipe = tiny(name, **neighbours)
    honest = fit(tiny_task, recipe)
    for task in (scrambled(tiny_task, tiny_task.test), replace(tiny_task, truth=None)):
        result = fit(task, recipe)
        assert outcome(result) == outcome(honest)
        assert result.history["sc"].tolist() == honest.history["sc"].tolist()
        assert result.history["val_acc"].tolist() == honest.history["val_acc"].tolist()
        assert result.best == honest.best
        assert result.classes().tolist() == honest.classes().tolist()


@pytest.mark.parametrize("threshold", RULES)
@pytest.mark.parametrize("name", DETECTORS)
def test_thresholds_of_detectors_use_no_hidden_label(
    tiny_task: Task, tiny: Tiny, name: str, threshold: str
) -> None:
    recipe = tiny(name, threshold=threshold)
    honest = fit(tiny_task, recipe)
    assert honest.snapshot.novelty is not None
    for nodes in (tiny_task.test, tiny_task.val):
        assert outcome(fit(scrambled(tiny_task, nodes), recipe)) == outcome(honest)
    # The rule is asked, for another one rejects other nodes.
    other = tiny(name, threshold=next(rule for rule in RULES if rule != threshold))
    assert outcome(fit(tiny_task, other)) != outcome(honest)


@every_recipe
def test_only_metrics_follow_the_truth(tiny_task: Task, tiny: Tiny, name: str) -> None:
    honest = fit(tiny_task, tiny(name)).history
    other = fit(scrambled(tiny_task, tiny_task.test), tiny(name)).history
    assert other["all"].tolist() != honest["all"].tolist()


@every_recipe
def test_even_the_truth_of_known_nodes_changes_nothing(
    tiny_task: Task, tiny: Tiny, name: str
) -> None:
    """The labels alone say what is known; the truth of training nodes is not read either."""
    assert tiny_task.truth is not None
    task = replace(tiny_task, truth=np.random.default_rng(1).permutation(tiny_task.truth))
    assert outcome(fit(task, tiny(name))) == outcome(fit(tiny_task, tiny(name)))


@every_recipe
def test_labels_of_validation_nodes_change_nothing_learned(
    tiny_task: Task, tiny: Tiny, neighbours: Settings, name: str
) -> None:
    """They may choose the epoch and name the groups, but not change embeddings or groups."""
    recipe = tiny(name, **neighbours)
    if aligns(recipe):
        recipe = recipe.with_settings(align_on="train")
    honest = fit(tiny_task, recipe)
    result = fit(scrambled(tiny_task, tiny_task.val), recipe)
    assert outcome(result) == outcome(honest)
    assert result.history["sc"].tolist() == honest.history["sc"].tolist()
    assert result.history["val_acc"].tolist() != honest.history["val_acc"].tolist()


def test_alignment_on_validation_labels_does_follow_them(tiny_task: Task, tiny: Tiny) -> None:
    """Twice as many validation nodes as training nodes, all of the other class, outvote these."""
    assert get_recipe("openima").config.align_on == "train+val"
    labels = tiny_task.labels.copy()
    labels[tiny_task.train[1::2]] = -1
    few = replace(tiny_task, train=tiny_task.train[::2], labels=labels)
    swapped = labels.copy()
    swapped[few.val] = 1 - labels[few.val]
    contrary = replace(few, labels=swapped)
    for align_on, follows in (("train+val", True), ("train", False)):
        recipe = tiny(align_on=align_on)
        changed = outcome(fit(contrary, recipe)) != outcome(fit(few, recipe))
        assert changed == follows


@every_recipe
def test_labels_of_training_nodes_are_used(tiny_task: Task, tiny: Tiny, name: str) -> None:
    task = scrambled(tiny_task, tiny_task.train)
    changed = outcome(fit(task, tiny(name))) != outcome(fit(tiny_task, tiny(name)))
    assert changed == (name != "infonce")  # which learns without labels
