from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import torch

from openima.graph.blocks import Neighbourhoods
from openima.graph.graph import Graph
from openima.nn.gat import EncoderConfig, GATEncoder
from openima.nn.rows import FeatureStore

MakeGraph = Callable[..., Graph]


def test_views_that_share_work_have_the_same_values_and_gradients(make_graph: MakeGraph) -> None:
    graph = make_graph(0.5)
    reach = Neighbourhoods(graph).everything(2)
    rows = FeatureStore(graph, torch.device("cpu")).rows(reach.inputs)

    def passed(shared: bool) -> list[torch.Tensor]:
        encoder = GATEncoder(24, EncoderConfig(6, 3), torch.Generator().manual_seed(1))
        views = torch.Generator().manual_seed(2)
        with encoder.unchanged() if shared else nullcontext():
            both = [encoder(rows, reach, views).g for _ in range(2)]
        torch.autograd.backward((both[0] * both[1]).sum())
        found = [p.grad for p in encoder.parameters() if p.grad is not None]
        return [*(g.detach() for g in both), *found]

    for one, other in zip(passed(True), passed(False), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def test_weights_may_change_after_the_promise(make_graph: MakeGraph) -> None:
    graph = make_graph(0.5)
    reach = Neighbourhoods(graph).everything(2)
    rows = FeatureStore(graph, torch.device("cpu")).rows(reach.inputs)
    encoder = GATEncoder(24, EncoderConfig(6, 3), torch.Generator().manual_seed(1))
    with encoder.unchanged():
        before = encoder(rows, reach).g
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(0.1)
    assert not torch.allclose(encoder(rows, reach).g, before)
