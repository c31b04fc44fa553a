"""What holds on a GPU; skipped where torch has none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from openima.graph.blocks import Neighbourhoods
from openima.graph.task import Task
from openima.methods import Recipe
from openima.nn.gat import EncoderConfig, GATEncoder
from openima.nn.rows import FeatureStore
from openima.train.trainer import train

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU")


def test_the_encoder_and_its_gradients_are_those_of_the_cpu(tiny_task: Task) -> None:
    def passed(device: torch.device) -> list[torch.Tensor]:
        initial = torch.Generator().manual_seed(0)
        encoder = GATEncoder(tiny_task.graph.n_features, EncoderConfig(), initial).to(device)
        reach = Neighbourhoods(tiny_task.graph).reach(np.arange(50), (None, None)).to(device)
        g, z, _ = encoder(FeatureStore(tiny_task.graph, device).rows(reach.inputs), reach)
        torch.autograd.backward(g.square().sum() + z[:, 0].sum())
        parameters = (p.grad for p in encoder.parameters())
        return [x.detach().cpu() for x in (g, z, *parameters) if x is not None]

    on_gpu, on_cpu = passed(torch.device("cuda")), passed(torch.device("cpu"))
    assert len(on_gpu) == len(on_cpu) > 2
    for one, other in zip(on_gpu, on_cpu, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_a_gpu_learns_the_same_classes_each_time(
    tiny_task: Task, tiny: Callable[..., Recipe]
) -> None:
    runs = [train(tiny_task, tiny(device="cuda", epochs=6), progress=False) for _ in range(2)]
    assert runs[0].history["all"].iloc[runs[0].best] > 0.8
    np.testing.assert_array_equal(runs[0].classes(), runs[1].classes())
