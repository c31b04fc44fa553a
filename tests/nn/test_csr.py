from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from openima.graph.blocks import Neighbourhoods
from openima.graph.graph import Graph
from openima.nn import csr
from openima.nn.csr import Csr, gathered_sum, segment_sum, sums_by_head, weighted_sums
from openima.nn.gat import EncoderConfig, GATEncoder
from openima.nn.rows import FeatureStore

MakeGraph = Callable[..., Graph]

LENGTHS = [0, 1, 31, 32, 33, 0, 0, 200, 64, 5, 0]


@pytest.fixture(params=["whole", "pieces"])
def summed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Sum bags as on the CPU, then as on a GPU."""
    name = str(request.param)
    monkeypatch.setattr(csr, "PIECEWISE", ("cpu",) if name == "pieces" else ())
    return name


def bags() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Draw rows, and bags of them with weights: (rows, index, indptr, weights)."""
    generator = torch.Generator().manual_seed(0)
    indptr = torch.tensor([0, *LENGTHS]).cumsum(0).int()
    n = int(indptr[-1])
    rows = torch.randn(50, 6, generator=generator, dtype=torch.float64)
    index = torch.randint(50, (n,), generator=generator, dtype=torch.int32)
    return rows, index, indptr, torch.randn(n, generator=generator, dtype=torch.float64)


def by_hand(rows: Tensor, index: Tensor, indptr: Tensor, weights: Tensor) -> Tensor:
    out = torch.zeros(len(indptr) - 1, rows.shape[1], dtype=rows.dtype)
    for i in range(len(out)):
        for k in range(int(indptr[i]), int(indptr[i + 1])):
            out[i] += weights[k] * rows[int(index[k])]
    return out


@pytest.mark.usefixtures("summed")
def test_bags_are_summed() -> None:
    rows, index, indptr, weights = bags()
    ones = torch.ones_like(weights)
    torch.testing.assert_close(
        weighted_sums(rows, index, indptr, weights), by_hand(rows, index, indptr, weights)
    )
    torch.testing.assert_close(
        gathered_sum(rows, index, indptr), by_hand(rows, index, indptr, ones)
    )
    in_order = torch.arange(len(index), dtype=torch.int32)
    entries = rows[index.long()]
    torch.testing.assert_close(
        segment_sum(entries, indptr), by_hand(entries, in_order, indptr, ones)
    )


@pytest.mark.usefixtures("summed")
@pytest.mark.parametrize("joined", [True, False])
def test_heads_are_summed_like_one_after_the_other(joined: bool) -> None:
    rows, index, indptr, weights = bags()
    by_head = torch.stack([rows, rows.flip(0), 2 * rows])
    of_head = torch.stack([weights, weights.flip(0), weights + 1])
    pairs = zip(by_head, of_head, strict=True)
    expected = torch.stack([by_hand(r, index, indptr, w) for r, w in pairs])
    heads = [Csr(indptr, index, own) for own in of_head]
    found = sums_by_head(by_head if joined else iter(by_head), heads)
    torch.testing.assert_close(found, expected)


@pytest.mark.usefixtures("summed")
def test_a_matrix_times_another_and_transposed() -> None:
    rows, index, indptr, weights = bags()
    matrix = Csr(indptr, index, weights)
    dense = torch.sparse_csr_tensor(
        indptr, index, weights, (len(LENGTHS), 50), check_invariants=False
    ).to_dense()
    torch.testing.assert_close(matrix.times(rows), dense @ rows)
    torch.testing.assert_close(matrix.part(slice(2, 9)).times(rows), dense[2:9] @ rows)
    other = torch.randn(len(LENGTHS), 3, dtype=torch.float64)
    torch.testing.assert_close(matrix.transposed(50).times(other), dense.t() @ other)


@pytest.mark.parametrize("store_sparse", [True, False])
def test_an_encoder_and_its_gradients_are_the_same_in_pieces(
    make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch, store_sparse: bool
) -> None:
    def passed() -> list[Tensor]:
        graph = make_graph(0.05 if store_sparse else 0.9, store_sparse=store_sparse)
        encoder = GATEncoder(24, EncoderConfig(6, 3), torch.Generator().manual_seed(1))
        reach = Neighbourhoods(graph).everything(2)
        rows = FeatureStore(graph, torch.device("cpu")).rows(reach.inputs)
        views = torch.Generator().manual_seed(2)
        g = encoder(rows, reach, views).g
        torch.autograd.backward(g.square().sum())
        return [g.detach(), *(p.grad for p in encoder.parameters() if p.grad is not None)]

    whole = passed()
    monkeypatch.setattr(csr, "PIECEWISE", ("cpu",))
    monkeypatch.setattr(csr, "PIECE", 3)
    for one, other in zip(whole, passed(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("summed")
def test_empty_bags_sum_to_zero() -> None:
    indptr, nothing = torch.zeros(4, dtype=torch.int32), torch.zeros(0, dtype=torch.int32)
    sums = weighted_sums(torch.ones(2, 3), nothing, indptr, torch.zeros(0))
    assert torch.equal(sums, torch.zeros(3, 3))


def test_no_piece_is_long_and_pieces_are_found_once() -> None:
    _, index, indptr, _ = bags()
    pieces, owners = csr._pieces(indptr)
    assert pieces[-1] == len(index)
    assert pieces.diff().max() == csr.PIECE
    assert pieces.diff().min() == 1
    assert owners.diff().tolist() == [-(-length // csr.PIECE) for length in LENGTHS]
    assert torch.equal(pieces[owners], indptr)
    assert csr._pieces(indptr)[0] is pieces
    assert csr._pieces(indptr.clone())[0] is not pieces
