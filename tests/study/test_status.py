from collections.abc import Callable
from pathlib import Path

import pandas as pd

from openima.study.claims import take
from openima.study.plan import Study
from openima.study.status import progress_of
from openima.study.store import Results


def test_trials_are_counted_by_what_has_become_of_them(
    make_study: Callable[..., Study], make_rows: Callable[..., pd.DataFrame], tmp_path: Path
) -> None:
    study = make_study('methods = ["openima", "infonce"]\nseeds = 4')
    results = Results(tmp_path)
    empty = progress_of(study.trials, results)
    assert empty["done"].tolist() == [0, 0]
    first, _, third, _, fifth, _, seventh, _ = study.trials
    results.write(first.id, make_rows(first))
    results.write("old", make_rows(first).assign(trial="old", code="0"))
    results.write("older", make_rows(third).assign(trial="older", code="0"))
    results.fail(fifth.id, "why")
    claim = take(results.running, seventh.id)
    assert claim is not None
    with claim:
        table = progress_of(study.trials, results).set_index("method")
    for name, counts in {
        "trials": [4, 4],
        "done": [1, 0],
        "older": [1, 0],
        "running": [1, 0],
        "failed": [1, 0],
    }.items():
        assert table[name].tolist() == counts
