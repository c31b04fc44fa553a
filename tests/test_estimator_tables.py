"""From tables on disk to answers, and other tables with what was learned."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from openima import OpenWorldClassifier
from openima.errors import InputError

LEAST = {"hidden": 8, "heads": 1, "clustering": {"kind": "kmeans", "n_init": 2}}
READ: dict[str, Any] = {"labels": "field", "text": "title", "unknown": "?"}

TOPICS = ("graph node edge link", "cell gene protein tissue", "star galaxy orbit comet")


def tables(folder: Path, nodes: range = range(60)) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Papers of three fields, in the titles of which the words of the field come up."""
    rng = np.random.default_rng(0)
    titles = [
        " ".join([*rng.permutation(TOPICS[i % 3].split())[:2], str(rng.choice(["new", "old"]))])
        for i in range(max(nodes) + 1)
    ]
    field = ["maths", "biology", "?"]
    frame = pd.DataFrame(
        {
            "id": [f"p{i}" for i in nodes],
            "field": [field[i % 3] if i % 2 else "?" for i in nodes],
            "title": [titles[i] for i in nodes],
            "year": [(i * 7) % 5 for i in nodes],
        }
    )
    links = [(f"p{i}", f"p{i + 3}") for i in nodes if i + 3 in nodes]
    edges = pd.DataFrame(links, columns=["source", "target"])
    folder.mkdir(exist_ok=True)
    frame.to_csv(folder / "nodes.csv", index=False)
    edges.to_csv(folder / "edges.csv", index=False)
    return frame, edges


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("papers") / "papers"
    tables(folder)
    return folder


@pytest.fixture(scope="module")
def fitted(papers: Path) -> OpenWorldClassifier:
    classifier = OpenWorldClassifier(n_novel=1, epochs=2, settings=LEAST, progress=False)
    return classifier.fit(papers, **READ)


def test_tables_are_read_with_their_options(fitted: OpenWorldClassifier, papers: Path) -> None:
    assert fitted.classes_.tolist() == ["biology", "maths", "novel_1"]
    assert fitted.predictions()["id"].tolist() == [f"p{i}" for i in range(60)]
    assert fitted.fitted_.source == {"graph": str(papers), "read": READ}


def test_the_same_tables_give_the_same_bytes(fitted: OpenWorldClassifier, papers: Path) -> None:
    """In two ways: a folder, and two files; words are weighed as they were."""
    nodes, edges = papers / "nodes.csv", papers / "edges.csv"
    for data, options in ((papers, {}), (nodes, {"edges": edges})):
        again = fitted.predictions(data, **options)
        pd.testing.assert_frame_equal(again, fitted.predictions(), check_exact=True)


def test_new_tables_may_lack_labels_and_most_words(
    fitted: OpenWorldClassifier, tmp_path: Path
) -> None:
    """Three nodes, in which no word comes up twice, and columns in another order."""
    nodes, _ = tables(tmp_path / "new", range(60, 63))
    few = nodes[["year", "title", "id"]]
    few.to_csv(tmp_path / "new" / "nodes.csv", index=False)
    (tmp_path / "new" / "edges.csv").write_text("source,target\np60,p60\n")
    found = fitted.predictions(tmp_path / "new")
    assert found["id"].tolist() == ["p60", "p61", "p62"]
    assert fitted.transform(tmp_path / "new").shape == (3, 8)


def test_a_saved_model_reads_tables_in_the_same_way(
    fitted: OpenWorldClassifier, papers: Path, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "model")
    loaded = OpenWorldClassifier.load(tmp_path / "model")
    pd.testing.assert_frame_equal(
        loaded.predictions(papers), fitted.predictions(), check_exact=True
    )


def test_a_missing_feature_is_named(fitted: OpenWorldClassifier, tmp_path: Path) -> None:
    nodes, _ = tables(tmp_path / "other")
    nodes.drop(columns="year").to_csv(tmp_path / "other" / "nodes.csv", index=False)
    with pytest.raises(InputError, match=r"without 'year'"):
        fitted.predict(tmp_path / "other")


def test_a_column_that_is_named_and_missing_is_refused(
    fitted: OpenWorldClassifier, papers: Path
) -> None:
    with pytest.raises(InputError, match=r"no label column 'area'"):
        fitted.predict(papers, labels="area")
    with pytest.raises(InputError, match=r"no text column 'abstract'"):
        fitted.predict(papers, text="abstract")


def test_edges_may_come_second(fitted: OpenWorldClassifier, papers: Path) -> None:
    nodes, edges = papers / "nodes.csv", papers / "edges.csv"
    one = OpenWorldClassifier(n_novel=1, epochs=2, settings=LEAST, progress=False)
    one.fit(str(nodes), str(edges), **READ)
    pd.testing.assert_frame_equal(one.predictions(), fitted.predictions(), check_exact=True)
    assert one.fitted_.source["read"] == {"edges": str(edges), **READ}
    assert one.predict(nodes, edges).tolist() == fitted.labels_.tolist()
    found = one.predictions(str(nodes), str(edges))
    pd.testing.assert_frame_equal(found, fitted.predictions(), check_exact=True)
    assert np.array_equal(one.transform(nodes, edges), fitted.embeddings_)
    assert np.array_equal(one.predict_proba(nodes, edges), fitted.predict_proba())


def test_a_misspelt_option_is_told_with_the_known_ones(
    fitted: OpenWorldClassifier, papers: Path
) -> None:
    with pytest.raises(InputError, match=r"no option 'label'.*did you mean 'labels'\?"):
        OpenWorldClassifier(n_novel=1).fit(papers, label="field")
    with pytest.raises(InputError, match=r"no option 'txt'.*did you mean 'text'\?"):
        fitted.predict(papers, txt="title")


def test_what_is_wrong_with_new_tables_is_told_and_not_that_labels_were_tried(
    fitted: OpenWorldClassifier, tmp_path: Path
) -> None:
    tables(tmp_path / "new")
    (tmp_path / "new" / "edges.csv").write_text("source,target\np1,p2\np1,nobody\n")
    with pytest.raises(InputError, match=r"the target 'nobody' is not in the nodes table"):
        fitted.predict(tmp_path / "new")


def test_options_without_a_graph_are_refused(fitted: OpenWorldClassifier) -> None:
    for ask in (fitted.predict, fitted.predict_proba, fitted.transform, fitted.predictions):
        with pytest.raises(InputError, match=r"no graph that the option 'edges' could be of"):
            ask(edges="edges.csv")


def test_a_label_column_without_labels_is_told_of(papers: Path, tmp_path: Path) -> None:
    nodes = pd.read_csv(papers / "nodes.csv").assign(field="")
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    (tmp_path / "edges.csv").write_bytes((papers / "edges.csv").read_bytes())
    made = OpenWorldClassifier(n_novel=1)
    with pytest.raises(InputError, match=r"no node has a label.*Got nothing but unknown ones"):
        made.fit(tmp_path, labels="field", text="title")
    nodes.drop(columns="field").to_csv(tmp_path / "nodes.csv", index=False)
    with pytest.raises(InputError, match=r"say where the labels are, labels=..., or pass them"):
        made.fit(tmp_path, text="title")
