from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.stats import kstest, truncnorm

from openima.graph.blocks import Neighbourhoods
from openima.graph.graph import Graph
from openima.nn.gat import GATLayer
from openima.nn.inference import embed_all
from openima.nn.rows import DenseRows, FeatureStore
from openima.nn.variational import (
    CUT_STD,
    LOG_SIGMA_BOUND,
    VariationalConfig,
    VariationalEncoder,
    mean_of_samples,
    sample,
)

MakeGraph = Callable[..., Graph]

CPU = torch.device("cpu")
SMALL = VariationalConfig(hidden=6, heads=3)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_means_and_spreads_come_from_layers_of_their_own(make_graph: MakeGraph) -> None:
    graph = make_graph(0.5)
    reach = Neighbourhoods(graph).reach(np.array([5, 30, 2]), (None, None))
    rows = FeatureStore(graph, CPU).rows(reach.inputs)
    encoder = VariationalEncoder(24, SMALL, seeded(1))
    assert encoder.dim == 6
    mean, z, log_sigma = encoder(rows, reach)
    hidden = DenseRows(F.elu(encoder.layers[0](rows, reach.blocks[0], None)))
    means, spreads = (layer(hidden, reach.blocks[1], None).mean(0) for layer in encoder.layers[1:])
    torch.testing.assert_close(mean, means)
    torch.testing.assert_close(z, F.normalize(means, dim=1))
    torch.testing.assert_close(log_sigma, LOG_SIGMA_BOUND * torch.tanh(spreads / LOG_SIGMA_BOUND))
    assert not torch.allclose(means, spreads)


def test_spreads_stay_in_their_bounds_and_go_on_learning(make_graph: MakeGraph) -> None:
    graph = make_graph(0.5)
    reach = Neighbourhoods(graph).everything(2)
    encoder = VariationalEncoder(24, SMALL, seeded(1))
    layer = encoder.layers[2]
    assert isinstance(layer, GATLayer)
    with torch.no_grad():
        layer.bias.fill_(2.0 * LOG_SIGMA_BOUND)
    log_sigma = encoder(FeatureStore(graph, CPU).rows(reach.inputs), reach).extra
    assert log_sigma is not None
    assert (log_sigma.abs() < LOG_SIGMA_BOUND).all()
    torch.autograd.backward(log_sigma.sum())
    assert layer.bias.grad is not None
    assert (layer.bias.grad > 0).all()


@pytest.mark.parametrize("chunk_size", [7, 1 << 16])
def test_chunks_of_nodes_are_embedded_as_all_at_once(
    make_graph: MakeGraph, chunk_size: int
) -> None:
    graph = make_graph(0.05)
    near, store = Neighbourhoods(graph), FeatureStore(graph, CPU)
    encoder = VariationalEncoder(
        24, VariationalConfig(hidden=6, heads=3, normalise=True), seeded(1)
    )
    reach = near.everything(2)
    expected = encoder(store.rows(reach.inputs), reach)
    for ours, theirs in zip(embed_all(encoder, store, near, chunk_size), expected, strict=True):
        assert ours is not None
        torch.testing.assert_close(ours, theirs.detach(), rtol=1e-4, atol=1e-5)


def test_samples_are_spread_as_told_and_cut_off() -> None:
    mean = torch.full((4000, 2), 3.0)
    log_sigma = torch.tensor([0.0, 1.0]).repeat(4000, 1)
    drawn = sample(mean, log_sigma, seeded(0))
    noise = (drawn - mean) / log_sigma.exp()
    assert noise.abs().max() <= 2.0 + 1e-5
    for column in noise.T:
        assert kstest(column, truncnorm(-2.0, 2.0).cdf).pvalue > 1e-3
    assert pytest.approx(truncnorm(-2.0, 2.0).std()) == CUT_STD
    assert torch.equal(drawn, sample(mean, log_sigma, seeded(0)))
    assert not torch.equal(drawn, sample(mean, log_sigma, seeded(1)))


def test_samples_let_gradients_through_to_both() -> None:
    mean, log_sigma = (torch.zeros(3, 2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    of_mean, of_log_sigma = torch.autograd.grad(
        sample(mean, log_sigma, seeded(0)).sum(), (mean, log_sigma)
    )
    assert torch.equal(of_mean, torch.ones(3, 2, dtype=torch.float64))
    assert torch.equal(of_log_sigma, sample(mean, log_sigma, seeded(0)).detach())


@pytest.mark.parametrize("n_samples", [10, 100])
def test_one_draw_is_spread_as_the_mean_of_many(n_samples: int) -> None:
    """A linear classifier of the mean latent vector says the mean of what it says of each."""
    n = 2000
    mean = torch.tensor([[1.0, -2.0, 0.5]]).repeat(n, 1)
    log_sigma = torch.tensor([[0.0, 0.5, -1.0]]).repeat(n, 1)
    classifier = torch.nn.Linear(3, 2)
    torch.nn.init.normal_(classifier.weight, generator=seeded(5))
    generator = seeded(6)
    with torch.no_grad():
        one_by_one = torch.stack(
            [classifier(sample(mean, log_sigma, generator)) for _ in range(n_samples)]
        ).mean(0)
        at_once = classifier(mean_of_samples(mean, log_sigma, n_samples, seeded(7)))
    for ours, theirs in zip(at_once.T, one_by_one.T, strict=True):
        assert kstest(ours, theirs).pvalue > 1e-3
        assert ours.std().item() == pytest.approx(theirs.std().item(), rel=0.1)
