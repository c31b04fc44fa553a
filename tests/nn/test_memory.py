"""What the kernels hold at once: nothing of edges x heads x channels, no sparse matrix dense."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from openima.graph.blocks import Block
from openima.nn.attention import attend
from openima.nn.sparse import sparse_matmul

MakeBlock = Callable[[Sequence[tuple[int, int]], int, int], Block]
MostBytes = Callable[[Callable[[], object]], int]

PEAK = """
import re, sys
from pathlib import Path
import torch
from openima.graph.blocks import Block
from openima.nn.attention import attend

def peak():
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

def run(n, n_edges, shared):
    heads, width = 8, 128
    sources = torch.randint(n, (n_edges,), dtype=torch.int32)
    indptr = torch.linspace(0, n_edges, n + 1).to(torch.int32)
    block = Block(indptr, sources, torch.arange(n, dtype=torch.int32), n)
    values = torch.randn(1 if shared else heads, n, width, requires_grad=True)
    maps = torch.randn(heads, width, width, requires_grad=True) if shared else None
    source = torch.randn(n, heads, requires_grad=True)
    target = torch.randn(n, heads, requires_grad=True)
    generator = torch.Generator().manual_seed(0)
    out = attend(values, source, target, block, maps=maps, p=0.5, generator=generator)
    out.sum().backward()

torch.set_num_threads(1)
shared = sys.argv[1] == "shared"
run(20, 100, shared)
before = peak()
run(1000, 400_000, shared)
print(peak() - before)
"""


@pytest.mark.parametrize("shared", [False, True])
def test_attention_holds_nothing_of_edges_times_channels(
    make_block: MakeBlock, most_bytes: MostBytes, shared: bool
) -> None:
    n, n_edges, n_heads, width = 200, 30_000, 8, 64
    pairs = np.random.default_rng(0).integers(0, n, (n_edges, 2))
    block = make_block(pairs.tolist(), n, n)
    values = torch.randn(2 if shared else n_heads, n, width, requires_grad=True)
    maps = torch.randn(n_heads, 2 * width, width, requires_grad=True) if shared else None
    source = torch.randn(n, n_heads, requires_grad=True)
    target = torch.randn(n, n_heads, requires_grad=True)
    generator = torch.Generator().manual_seed(0)

    def step() -> None:
        out = attend(values, source, target, block, maps=maps, p=0.5, generator=generator)
        torch.autograd.backward(out.sum())

    of_edges_and_heads = 4 * n_edges * n_heads
    # Index arrays may take 8 bytes an entry; one head's rows at the edges would take 8 times more.
    assert of_edges_and_heads <= most_bytes(step) <= 2 * of_edges_and_heads


@pytest.mark.parametrize("n_pieces", [1, 2])
def test_no_sums_that_are_mapped_are_kept(make_block: MakeBlock, n_pieces: int) -> None:
    n, n_edges, n_heads, width = 500, 600, 8, 64
    pairs = np.random.default_rng(0).integers(0, n, (n_edges, 2))
    block = make_block(pairs.tolist(), n, n)
    values = torch.randn(n_pieces, n, width, requires_grad=True)
    source, target = (torch.randn(n, n_heads, requires_grad=True) for _ in range(2))
    maps = torch.randn(n_heads, n_pieces * width, 4, requires_grad=True)
    given = {x.untyped_storage().data_ptr() for x in (values, source, target, maps)}
    kept: dict[int, int] = {}

    def note(x: torch.Tensor) -> torch.Tensor:
        storage = x.untyped_storage()
        if storage.data_ptr() not in given:
            kept[storage.data_ptr()] = storage.nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
        generator = torch.Generator().manual_seed(0)
        out = attend(values, source, target, block, maps=maps, p=0.5, generator=generator)
    assert out.grad_fn is not None
    # Attention weights take four bytes each and their mask one; the sums would take far more.
    assert 4 * n_edges * n_heads <= sum(kept.values()) <= 5 * n_edges * n_heads


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize("way", ["shared", "a head"])
def test_peak_memory_of_attention_stays_far_below_edges_times_channels(way: str) -> None:
    command = [sys.executable, "-c", PEAK, way]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    of_edges_and_heads = 4 * 400_000 * 8
    # All of edges x heads x channels is 128 times that, and one head's share 16 times, which
    # would come on top of the ten or so that the forward and backward pass take.
    assert of_edges_and_heads < int(result.stdout) < 18 * of_edges_and_heads


def test_no_dense_copy_of_a_sparse_matrix_is_made(most_bytes: MostBytes) -> None:
    n, n_columns, stored, rng = 3000, 2000, 6000, np.random.default_rng(0)
    density = stored / n / n_columns
    matrix = sp.csr_array(sp.random_array((n, n_columns), density=density, rng=rng))
    indptr, columns = (
        torch.from_numpy(p.astype(np.int32)) for p in (matrix.indptr, matrix.indices)
    )
    values = torch.from_numpy(matrix.data).float()
    weight = torch.randn(2, n_columns, 4, requires_grad=True)
    products: list[torch.Tensor] = []

    def step() -> None:
        products.append(sparse_matmul(indptr, columns, values, weight))
        torch.autograd.backward(products[0].sum())

    assert 4 * 2 * n * 4 <= most_bytes(step) <= 4 * (2 * n * 4 + 2 * stored)
    expected = torch.from_numpy(matrix.toarray()).float() @ weight.detach()
    torch.testing.assert_close(products[0].detach(), expected, rtol=1e-5, atol=1e-5)
