"""The rivals: one small function each gives the ways in which a library can compute a cell.

The fastest way of a family is what we are held against."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from sparsecc.bench.problem import Candidate, Problem

Tensor = Any
Peer = Callable[[Problem], Iterator[Candidate]]


def _same(result: Tensor) -> Tensor:
    return result


def _dense_bytes(problem: Problem) -> int:
    return problem.cell.dense_bytes + problem.dense_bytes()


def f_linear(problem: Problem) -> Iterator[Candidate]:
    """cuBLAS through ``F.linear``."""
    if problem.cell.operation.name == "linear":
        linear = problem.torch.nn.functional.linear
        weights = problem.matrix.dense_copies(problem.turns)
        calls = tuple(partial(linear, problem.x, w) for w in weights)
        yield Candidate("F.linear", calls, _same, _dense_bytes(problem))


def matmul(problem: Problem) -> Iterator[Candidate]:
    """cuBLAS through ``matmul``, into an array that is there."""
    torch, x = problem.torch, problem.x
    weights = problem.matrix.dense_copies(problem.turns)
    if problem.cell.operation.name == "SDDMM":
        return
    out = problem.poisoned()
    if problem.cell.operation.name == "linear":
        calls = tuple(partial(torch.matmul, x, w.t(), out=out) for w in weights)
    else:
        calls = tuple(partial(torch.matmul, w, x, out=out) for w in weights)
    yield Candidate("matmul", calls, _same, _dense_bytes(problem), out)


def padded(problem: Problem) -> Iterator[Candidate]:
    """cuBLAS with the tokens padded to 16: it is slow for some smaller numbers."""
    torch, tokens = problem.torch, problem.cell.width
    if problem.cell.operation.name == "linear" and tokens < 16:
        x = torch.zeros(16, problem.cell.columns, device=problem.device, dtype=problem.x.dtype)
        x[:tokens] = problem.x
        out = problem.poisoned(16, problem.cell.rows)
        weights = problem.matrix.dense_copies(problem.turns)
        calls = tuple(partial(torch.matmul, x, w.t(), out=out) for w in weights)
        yield Candidate("padded to 16", calls, lambda y: y[:tokens], _dense_bytes(problem), out)


def cusparselt(problem: Problem) -> Iterator[Candidate]:
    """cuSPARSELt by the algorithm that its own search finds, for both orders of the result, and by its default: through
    torch's public functions."""
    torch, tokens = problem.torch, problem.cell.width
    first = problem.matrix.keep("sparselt", lambda: [torch._cslt_compress(problem.matrix.dense)])
    size = first[0].numel() * first[0].element_size()
    count = problem.rotation(size)
    first += [first[0].clone() for _ in range(count - len(first))]
    weights, x = first[:count], problem.x
    if tokens % 8:  # it takes multiples of 8 only
        x = torch.zeros(-(-tokens // 8) * 8, x.shape[1], device=x.device, dtype=x.dtype)
        x[:tokens] = problem.x
    nbytes = problem.cell.dense_bytes * 9 // 16 + problem.dense_bytes()
    for rows_first in (False, True):
        order = {"transpose_result": True} if rows_first else {}
        found = int(torch._cslt_sparse_mm_search(weights[0], x.t(), **order))
        for name, algorithm in {"default": 0, f"algorithm {found}": found}.items():
            calls = tuple(
                partial(torch._cslt_sparse_mm, w, x.t(), alg_id=algorithm, **order) for w in weights
            )
            read: Callable[[Tensor], Tensor] = (
                (lambda y: y[:tokens]) if rows_first else (lambda y: y.t()[:tokens])
            )
            layout = "row-major" if rows_first else "column-major"
            yield Candidate(f"{name}, {layout}", calls, read, nbytes)


def torch_bsr(problem: Problem) -> Iterator[Candidate]:
    """torch's own Triton kernels for BSR, through ``@`` and through ``F.linear``."""
    torch, x, first = problem.torch, problem.x, problem.matrix.bsr
    size = first.values().numel() * first.values().element_size()
    weights = [first] + [first.clone() for _ in range(problem.rotation(size) - 1)]
    nbytes = size + problem.dense_bytes()
    calls = tuple(partial(torch.matmul, w, x) for w in weights)
    yield Candidate("bsr @ x", calls, _same, nbytes)
    turned = x.t().contiguous()
    calls = tuple(partial(torch.nn.functional.linear, turned, w) for w in weights)
    yield Candidate("F.linear(x, bsr)", calls, lambda y: y.t(), nbytes)


def _csr_copies(problem: Problem) -> tuple[list[Tensor], int]:
    first = problem.matrix.csr
    parts = (first.values(), first.col_indices(), first.crow_indices())
    size = sum(part.numel() * part.element_size() for part in parts)
    made: list[Tensor] = problem.matrix.keep("csr copies", lambda: [first])
    made += [first.clone() for _ in range(problem.rotation(size) - len(made))]
    return made[: problem.rotation(size)], size


def cusparse(problem: Problem) -> Iterator[Candidate]:
    """cuSPARSE through torch's CSR tensors."""
    torch, x, name = problem.torch, problem.x, problem.cell.operation.name
    weights, size = _csr_copies(problem)
    nbytes = size + problem.dense_bytes()
    if name == "SDDMM":
        second = problem.inputs["V"].t()

        def sampled(weight: Tensor) -> Tensor:
            found = torch.sparse.sampled_addmm(weight, x, second, beta=0.0)
            return found.values() * weight.values()

        yield Candidate("sampled_addmm", tuple(partial(sampled, w) for w in weights), _same, nbytes)
        return
    yield Candidate("csr @ x", tuple(partial(torch.matmul, w, x) for w in weights), _same, nbytes)
    if name == "SpMM":
        turned = x.t().contiguous().t()
        calls = tuple(partial(torch.matmul, w, turned) for w in weights)
        yield Candidate("csr @ x, column-major", calls, _same, nbytes)


def torch_sampled(problem: Problem) -> Iterator[Candidate]:
    """SDDMM by torch's dense operations: the whole product, or rows gathered for each entry."""
    torch = problem.torch
    first, second = problem.inputs.values()
    matrix = problem.matrix
    rows, columns, values = matrix.rows_of_entries, matrix.csr.col_indices(), matrix.csr.values()
    places = rows * problem.cell.columns + columns
    nbytes = problem.dense_bytes() + values.numel() * (2 * values.element_size() + 8)

    def whole() -> Tensor:
        return torch.matmul(first, second.t()).flatten()[places] * values

    yield Candidate("dense product at the entries", (whole,), _same, nbytes)
    if values.numel() * problem.cell.width * first.element_size() < 8e9:

        def gathered() -> Tensor:
            product = first[rows] * second[columns]
            return product.sum(-1, dtype=torch.float32).to(values.dtype) * values

        yield Candidate("gathered rows", (gathered,), _same, nbytes)


PEERS: dict[str, tuple[Peer, ...]] = {
    "dense": (f_linear, matmul, padded),
    "cuSPARSELt": (cusparselt,),
    "torch BSR": (torch_bsr,),
    "cuSPARSE": (cusparse,),
    "torch": (torch_sampled,),
}
"""The families of rivals, by the names that cells and bars use."""
