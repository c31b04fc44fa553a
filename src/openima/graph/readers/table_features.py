"""The features of a table of nodes: columns of numbers, and words counted in one text column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer

from openima.errors import InputError
from openima.graph.graph import SparseFeatures
from openima.graph.readers.table_base import Table, refuse_cell

MIN_ROWS_PER_WORD = 2
MAX_WORDS = 10_000


def number_matrix(table: Table, batch: Any, columns: tuple[str, ...], row: int) -> Any:
    """Put the feature columns of one batch side by side, float32 of shape (rows, columns).

    `row` is the row of the table at which the batch starts; it is for messages.
    """
    values = np.empty((batch.num_rows, len(columns)), dtype=np.float32)
    for place, column in enumerate(columns):
        values[:, place] = batch.column(column).to_numpy(zero_copy_only=False)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        at, place = bad[0]
        refuse_cell(
            table,
            row + int(at),
            columns[place],
            f"the feature {columns[place]!r} is not a finite number",
            "a finite float32 number",
            "fill in the value, or drop the row or the column",
        )
    return values


def bag_of_words(
    table: Table, column: str, texts: Any, weights: Mapping[str, float] | None = None
) -> tuple[SparseFeatures, NDArray[np.str_]]:
    """Turn texts into sparse float32 TF-IDF features, each row of unit (L2) length.

    Unit rows keep a long abstract from outweighing a short one in attention. A word counts if
    at least two rows have it, as a word of a single row links nothing; of more than 10,000
    words the most frequent stay. A text without such a word is a row of zeros. `texts` is an
    Arrow chunked array of n strings; the names of the features are `column:word`.

    With the `weights` of the words of another table (`word_weights` gets them back from its
    features), just those words count and weigh what they did there.
    """
    if weights is not None:
        known = TfidfVectorizer(vocabulary=list(weights), norm="l2", dtype=np.float32)
        known.idf_ = np.fromiter(weights.values(), np.float32)
        return sp.csr_array(known.transform(_strings(texts))), _named(column, list(weights))
    words = TfidfVectorizer(
        min_df=MIN_ROWS_PER_WORD, max_features=MAX_WORDS, norm="l2", dtype=np.float32
    )
    if not _words_in(texts, words.build_analyzer()):
        raise InputError(
            f"the text column {column!r} has no words",
            where=str(table.path),
            expected="words of two or more letters",
            remedy="name another column as text, or none",
        )
    try:
        counts = words.fit_transform(_strings(texts))
    except ValueError:  # the only one left: no word is frequent enough
        raise InputError(
            f"no word of the text column {column!r} is in two rows",
            where=str(table.path),
            expected="texts that share words",
            remedy="name another column as text, or none",
        ) from None
    return sp.csr_array(counts), _named(column, words.get_feature_names_out())


def word_weights(features: SparseFeatures) -> NDArray[np.float32]:
    """Return how much `bag_of_words` weighed the word of each column of (N, F) features, (F,).

    It is the inverse document frequency ln((1 + N) / (1 + rows with the word)) + 1, to the bit.
    """
    n_rows, n_words = features.shape
    rows_with = np.bincount(features.indices, minlength=n_words).astype(np.float32)
    weights: NDArray[np.float32] = np.log(np.float32(n_rows + 1) / (rows_with + 1)) + np.float32(1)
    return weights


def _named(column: str, words: Sequence[str]) -> NDArray[np.str_]:
    return np.asarray([f"{column}:{word}" for word in words], dtype=np.str_)


def _strings(texts: Any) -> Iterator[str]:
    for chunk in texts.chunks:
        yield from chunk.to_pylist()


def _words_in(texts: Any, analyse: Any) -> bool:
    return any(analyse(text) for text in _strings(texts))
