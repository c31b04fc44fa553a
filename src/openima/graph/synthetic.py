"""Graphs made to order: communities, hubs, uneven classes and noisy features, of any size."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from openima.errors import InputError
from openima.graph.graph import Graph
from openima.graph.task import LabelledGraph

Positions = NDArray[np.int32]
Draw = Callable[[int], tuple[Positions, Positions]]

_CHUNK = 1 << 22  # endpoints drawn, or feature rows times columns made, in one go
_ROUNDS = 200  # how often duplicates are replaced before a graph counts as too dense


def synthetic(
    n_nodes: int,
    n_classes: int,
    *,
    average_degree: float = 10.0,
    n_features: int = 32,
    homophily: float = 0.8,
    imbalance: float = 1.0,
    feature_noise: float = 1.0,
    degree_exponent: float = 2.5,
    seed: int = 0,
) -> LabelledGraph:
    """Draw an undirected graph from a degree-corrected block model; same seed, same graph.

    - Links: exactly `round(n_nodes * average_degree / 2)`, all different, no self-loops. A node
      may stay without any.
    - `homophily`: the share of links inside a class, met to the nearest link.
    - `imbalance`: how many times larger the largest class (number 0) is than the smallest; the
      sizes between fall geometrically.
    - `degree_exponent`: degrees follow a power law with this exponent (above 2; smaller means
      heavier hubs), cut off at about the square root of the class's total degree, beyond which
      a hub would need parallel links.
    - `feature_noise`: the standard deviation, in every direction, around the centre of a class.
      Centres are random unit vectors, about 1.4 apart however many features there are, so at 1
      neighbouring classes overlap and at 0 the features give the class away.
    """
    _check_sizes(n_nodes, n_classes, n_features, seed)
    _check_shape(average_degree, homophily, imbalance, feature_noise, degree_exponent)
    rng = np.random.default_rng(seed)
    sizes = _class_sizes(n_nodes, n_classes, imbalance)
    labels = rng.permutation(np.repeat(np.arange(n_classes), sizes))
    weights = _degree_weights(rng, sizes, average_degree, degree_exponent)
    # Links are drawn between positions in class order, and then renamed to node numbers.
    node_at = np.argsort(labels, kind="stable").astype(np.int32)
    source, target = _links(rng, sizes, weights, round(n_nodes * average_degree / 2), homophily)
    for ends in (source, target):
        for start in range(0, len(ends), _CHUNK):
            ends[start : start + _CHUNK] = node_at[ends[start : start + _CHUNK]]
    graph = Graph.from_edges(
        source,
        target,
        _features(rng, labels, n_classes, n_features, feature_noise),
        directed=False,
        name=f"synthetic-{seed}",
    )
    return LabelledGraph(graph, labels, tuple(f"class {c}" for c in range(n_classes)))


def _class_sizes(n_nodes: int, n_classes: int, imbalance: float) -> NDArray[np.int64]:
    """Sizes that fall geometrically from the first class to the last and add up to `n_nodes`."""
    sizes = _apportion(n_nodes, np.power(imbalance, -np.linspace(0, 1, n_classes)))
    if sizes.min() < 2:
        raise InputError(
            "the smallest class would have fewer than two nodes",
            where="synthetic",
            got=f"imbalance {imbalance:g}, {n_classes:,} classes, {n_nodes:,} nodes",
            remedy="lower imbalance or n_classes, or raise n_nodes",
        )
    return sizes


def _apportion(total: int, shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Split `total` into whole numbers in proportion to `shares` (largest remainders first)."""
    exact = shares * (total / shares.sum())
    parts: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    left = total - int(parts.sum())
    parts[np.argsort(parts - exact, kind="stable")[:left]] += 1
    return parts


def _degree_weights(
    rng: np.random.Generator,
    sizes: NDArray[np.int64],
    average_degree: float,
    exponent: float,
) -> NDArray[np.float64]:
    """Draw a Pareto weight per position, to which its expected degree is proportional."""
    weights: NDArray[np.float64] = 1 + rng.pareto(exponent - 1, int(sizes.sum()))
    largest_degree = np.maximum(np.sqrt(average_degree * sizes), average_degree)
    cut_off = np.maximum(largest_degree / average_degree * weights.mean(), 1)
    np.minimum(weights, np.repeat(cut_off, sizes), out=weights)
    return weights


def _links(
    rng: np.random.Generator,
    sizes: NDArray[np.int64],
    weights: NDArray[np.float64],
    n_links: int,
    homophily: float,
) -> tuple[Positions, Positions]:
    """Draw the links inside each class, then those between classes, as positions."""
    cumulative = np.concatenate([[0.0], np.cumsum(weights)])
    ends = np.cumsum(sizes)
    starts = ends - sizes
    n_inside = round(n_links * homophily)
    inside = _apportion(n_inside, cumulative[ends] - cumulative[starts])
    pairs = sizes * (sizes - 1) // 2
    n_pairs_between = math.comb(int(ends[-1]), 2) - int(pairs.sum())
    worst = int(np.argmax(inside / pairs))
    _check_room(int(inside[worst]), int(pairs[worst]), f"inside class {worst}")
    _check_room(n_links - n_inside, n_pairs_between, "between classes")

    source, target = np.empty(n_links, np.int32), np.empty(n_links, np.int32)
    done = 0
    for start, end, count in zip(starts.tolist(), ends.tolist(), inside.tolist(), strict=True):
        within = _within(rng, cumulative[start : end + 1], start)
        done = _fill_distinct(rng, within, count, source, target, done)
    between = _between(rng, cumulative, sizes)
    _fill_distinct(rng, between, n_links - n_inside, source, target, done)
    return source, target


def _within(rng: np.random.Generator, cumulative: NDArray[np.float64], first: int) -> Draw:
    """Return a function that draws pairs inside a class that starts at position `first`."""
    low, width = cumulative[0], cumulative[-1] - cumulative[0]

    def draw(count: int) -> tuple[Positions, Positions]:
        ends = _locate(cumulative, low + width * rng.random(2 * count)) + np.int32(first)
        return ends[:count], ends[count:]

    return draw


def _between(
    rng: np.random.Generator, cumulative: NDArray[np.float64], sizes: NDArray[np.int64]
) -> Draw:
    """Return a function that draws one end anywhere and the other outside the first one's class."""
    class_at = np.repeat(np.arange(len(sizes)), sizes)
    ends = np.cumsum(sizes)
    total, low, high = cumulative[-1], cumulative[ends - sizes], cumulative[ends]

    def draw(count: int) -> tuple[Positions, Positions]:
        a = _locate(cumulative, total * rng.random(count))
        own = class_at[a]
        width = (high - low)[own]
        point = (total - width) * rng.random(count)
        point += np.where(point >= low[own], width, 0)  # step over the class of `a`
        b = _locate(cumulative, point)
        proper = class_at[b] != own  # only rounding at a border can break this
        return a[proper], b[proper]

    return draw


def _locate(cumulative: NDArray[np.float64], points: NDArray[np.float64]) -> Positions:
    found = np.searchsorted(cumulative, points, side="right") - 1
    return np.minimum(found, len(cumulative) - 2).astype(np.int32)


def _fill_distinct(
    rng: np.random.Generator,
    draw: Draw,
    count: int,
    source: Positions,
    target: Positions,
    done: int,
) -> int:
    """Write `count` different links from `draw` at `done`; return where the next ones go.

    A link is kept as one whole number, smaller end first, so that a sort finds the duplicates;
    these and self-loops are drawn again, and a surplus is dropped at random.
    """
    keys = np.empty(0, dtype=np.int64)
    for _ in range(_ROUNDS):
        if len(keys) >= count:
            break
        wanted = max(count - len(keys), count // 16) * 9 // 8 + 16
        fresh = [keys]
        for start in range(0, wanted, _CHUNK):
            a, b = draw(min(_CHUNK, wanted - start))
            proper = a != b
            low, high = np.minimum(a, b)[proper], np.maximum(a, b)[proper]
            fresh.append(low.astype(np.int64) << 32 | high)
        keys = np.concatenate(fresh)
        keys.sort()  # and not np.unique, whose hash table is ten times slower on 60 M numbers
        keys = keys[np.diff(keys, prepend=-1) != 0]
    if len(keys) < count:
        raise _too_dense(f"after {_ROUNDS} rounds {len(keys):,} of {count:,} links were different")
    surplus = rng.choice(len(keys), len(keys) - count, replace=False, shuffle=False)
    keys = np.delete(keys, surplus)
    source[done : done + count] = keys >> 32
    target[done : done + count] = keys & 0xFFFFFFFF
    return done + count


def _features(
    rng: np.random.Generator,
    labels: NDArray[np.int64],
    n_classes: int,
    n_features: int,
    noise: float,
) -> NDArray[np.float32]:
    """Make a random unit vector per class and Gaussian noise around it, `(n_nodes, n_features)`."""
    centres = rng.standard_normal((n_classes, n_features), dtype=np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    features = np.empty((len(labels), n_features), dtype=np.float32)
    rows = max(_CHUNK // n_features, 1)
    for start in range(0, len(labels), rows):
        block = features[start : start + rows]
        rng.standard_normal(dtype=np.float32, out=block)
        block *= np.float32(noise)
        block += centres[labels[start : start + rows]]
    return features


def _check_sizes(n_nodes: int, n_classes: int, n_features: int, seed: int) -> None:
    for name, value, least, most in (
        ("n_nodes", n_nodes, 4, np.iinfo(np.int32).max),
        ("n_classes", n_classes, 2, n_nodes // 2),
        ("n_features", n_features, 1, None),
        ("seed", seed, 0, None),
    ):
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not whole or value < least or (most is not None and value > most):
            upper = "" if most is None else f", at most {most:,}"
            raise InputError(
                f"{name} is out of range",
                where="synthetic",
                expected=f"a whole number, at least {least}{upper}",
                got=repr(value),
            )


def _check_shape(
    average_degree: float,
    homophily: float,
    imbalance: float,
    feature_noise: float,
    degree_exponent: float,
) -> None:
    for name, value, allowed, expected in (
        ("average_degree", average_degree, average_degree > 0, "a positive number"),
        ("homophily", homophily, 0 <= homophily <= 1, "a share from 0 to 1"),
        ("imbalance", imbalance, imbalance >= 1, "a ratio of at least 1"),
        ("feature_noise", feature_noise, feature_noise >= 0, "a number of at least 0"),
        ("degree_exponent", degree_exponent, degree_exponent > 2, "a number above 2"),
    ):
        if not allowed or not math.isfinite(value):
            raise InputError(
                f"{name} is out of range", where="synthetic", expected=expected, got=repr(value)
            )


def _check_room(n_links: int, n_pairs: int, where: str) -> None:
    """Refuse more links than half of the pairs of nodes: drawing different ones would not end."""
    if n_links > n_pairs // 2 and n_links > 0:
        raise _too_dense(f"{n_links:,} links {where} for {n_pairs:,} pairs of nodes")


def _too_dense(got: str) -> InputError:
    return InputError(
        "the graph would be too dense",
        where="synthetic",
        expected="at most half of all pairs to be linked",
        got=got,
        remedy="lower average_degree, move homophily, or raise n_nodes",
    )
