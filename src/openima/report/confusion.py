"""Predictions beside the true classes, where those are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from openima.metrics.accuracy import open_world_accuracy
from openima.predict.align import best_matching, count_matrix
from openima.report.reading import RunFiles


def compare(files: RunFiles) -> dict[str, Any] | None:
    """Compare the test nodes whose class is known with their predictions; None if there are none.

    `counts` has one row a true class, the known ones first, and one column a predicted class:
    that which stands for the first row, for the second, ..., then the rest. A known class stands
    for itself, a discovered one for the other true class that it fits best. `columns` has their
    rows in the classes table, `stands_for` the true class of each of these rows, or None.
    `accuracy` matches known classes anew too, as the history does.
    """
    nodes = files.nodes
    if "truth" not in nodes:
        return None
    test = np.flatnonzero((nodes["part"] == "test") & nodes["truth"].notna())
    if len(test) == 0:
        return None
    known = files.classes["class"][~files.novel].astype(str).tolist()
    truth = nodes["truth"].iloc[test].astype(str)
    names = known + sorted(set(truth) - set(known), key=lambda name: (len(name), name))
    classes = files.classes["class"].astype(str).tolist()
    order = np.argsort(files.novel, kind="stable")  # known ones first: the ids that `names` has
    id_of = dict(zip([classes[row] for row in order], range(len(order)), strict=True))
    true_ids = truth.map({name: i for i, name in enumerate(names)}).to_numpy()
    predicted = files.predictions["label"].iloc[test].astype(str).map(id_of).to_numpy()
    accuracy = open_world_accuracy(predicted, true_ids, len(known))

    counts = count_matrix(predicted, true_ids, max(len(names), len(classes)))
    counts = counts[: len(classes), : len(names)]
    matching = np.arange(len(classes))
    matching[len(known) :] = len(known) + best_matching(counts[len(known) :, len(known) :])
    columns = np.argsort(matching, kind="stable")
    stands_for: list[str | None] = [None] * len(classes)
    for row, true in zip(order, matching, strict=True):
        stands_for[int(row)] = names[true] if true < len(names) else None
    return {
        "n": len(test),
        "accuracy": {
            kind: None if np.isnan(value) else value for kind, value in vars(accuracy).items()
        },
        "n_known": len(known),
        "names": names,
        "columns": [int(order[column]) for column in columns],
        "counts": counts[columns].T.tolist(),
        "stands_for": stands_for,
    }
