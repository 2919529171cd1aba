"""Kernels beside SciPy and NumPy, on one thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import matrices
import numpy as np
from matrices import sp
from timing import Row, Table, interleaved

import sparsecc as sc

Matrices = Mapping[str, Callable[[], Any]]


def _close(ours: Any, theirs: Any, what: str) -> None:
    """A benchmark of wrong answers is none."""
    ours = np.asarray(ours)
    exact = np.dtype(theirs.dtype).itemsize > 4
    if not np.allclose(ours, theirs, rtol=1e-9 if exact else 1e-3, atol=1e-12 if exact else 1e-3):
        raise AssertionError(f"{what}: results differ")


def _rounds(quick: bool) -> int:
    return 5 if quick else 15


def spmv(cases: Matrices, quick: bool) -> Table:
    """CSR times a vector."""
    table = Table("spmv", "SpMV, CSR: y[i] = A[i,j] * x[j] (CPU ms)", "ours / SciPy")

    def measure(name: str, matrix: Any) -> None:
        a, x = sc.asarray(matrix), np.linspace(1, 2, matrix.shape[1]).astype(matrix.dtype)
        y = np.empty(matrix.shape[0], matrix.dtype)
        kernel = sc.compile("y[i] = A[i,j] * x[j]", A=a, x=x)
        _close(kernel(A=a, x=x), matrix @ x, name)
        times = interleaved(
            {
                "ours, out=": lambda: kernel(A=a, x=x, out=y),
                "ours, new result": lambda: kernel(A=a, x=x),
                "SciPy": lambda: matrix @ x,
            },
            2 * _rounds(quick) + 1,
        )
        ratio = times["ours, new result"] / times["SciPy"]
        table.add(Row(name, times, ratio, 1.1, note=f"{matrix.nnz} entries"))

    for name, make in cases.items():
        measure(name, make())
    return table


def spmm(cases: Matrices, columns: int, quick: bool) -> Table:
    """CSR times a dense row-major matrix."""
    table = Table(f"spmm-{columns}", f"SpMM, CSR x dense of {columns} columns (CPU ms)",
                  "ours, out= / SciPy")  # fmt: skip

    def measure(name: str, matrix: Any) -> None:
        if matrix.shape[0] * columns > 50_000_000:
            table.add(Row(name, {}, note="left out: the result takes over 400 MB"))
            return
        rng = np.random.default_rng(1)
        a = sc.asarray(matrix)
        b = rng.random((matrix.shape[1], columns)).astype(matrix.dtype)
        c = np.empty((matrix.shape[0], columns), matrix.dtype)
        kernel = sc.compile("C[i,j] = A[i,k] * B[k,j]", A=a, B=b)
        _close(kernel(A=a, B=b), matrix @ b, name)
        times = interleaved(
            {
                "ours, out=": lambda: kernel(A=a, B=b, out=c),
                "ours, new result": lambda: kernel(A=a, B=b),
                "SciPy": lambda: matrix @ b,
            },
            _rounds(quick),
        )
        note = f"new result: {times['ours, new result'] / times['SciPy']:.2f}"
        bar = 1 / 1.5 if columns == 32 else None
        table.add(Row(name, times, times["ours, out="] / times["SciPy"], bar, note=note))

    for name, make in cases.items():
        measure(name, make())
    return table


def add(cases: Matrices, quick: bool) -> Table:
    """CSR + CSR."""
    table = Table("add", "CSR + CSR into CSR (CPU ms; B is A's transpose)", "ours / SciPy")

    def measure(name: str, first: Any) -> None:
        # The Laplacian is symmetric: a shifted copy makes the patterns differ.
        other = sp.csr_array(first.T) if (first != first.T).nnz else sp.csr_array(_shifted(first))
        other.sort_indices()
        a, b = sc.asarray(first), sc.asarray(other)
        kernel = sc.compile("C[i,j] = A[i,j] + B[i,j]", A=a, B=b, out="CSR")
        _same_sparse(kernel(A=a, B=b), first + other, name)
        times = interleaved(
            {"ours": lambda: kernel(A=a, B=b), "SciPy": lambda: first + other}, _rounds(quick)
        )
        table.add(Row(name, times, times["ours"] / times["SciPy"]))

    for name, make in cases.items():
        measure(name, make())
    return table


def _shifted(matrix: Any) -> Any:
    n = matrix.shape[0]
    return sp.csr_array(matrix @ sp.eye_array(n, k=3, format="csr"))


def _same_sparse(ours: Any, theirs: Any, what: str) -> None:
    """Entries compared as they are: the dense form would not fit."""
    mine = ours.to_scipy().tocsr()
    difference = abs(mine - theirs)
    largest = difference.max() if difference.nnz else 0.0
    if mine.shape != theirs.shape or largest > 1e-9 * max(1.0, abs(theirs).max()):
        raise AssertionError(f"{what}: results differ")


def spgemm(cases: Matrices, quick: bool) -> Table:
    """CSR times CSR, rows sorted."""
    table = Table("spgemm", "SpGEMM, CSR x CSR into CSR, A * A (CPU ms; ours are sorted)",
                  "ours / SciPy sorted")  # fmt: skip

    def measure(name: str, matrix: Any) -> None:
        a = sc.asarray(matrix)
        kernel = sc.compile("C[i,j] = A[i,k] * B[k,j]", A=a, B=a, out="CSR")
        _same_sparse(kernel(A=a, B=a), matrix @ matrix, name)

        def peer() -> Any:
            product = matrix @ matrix
            product.sort_indices()
            return product

        times = interleaved(
            {
                "ours": lambda: kernel(A=a, B=a),
                "SciPy": lambda: matrix @ matrix,
                "SciPy sorted": peer,
            },
            _rounds(quick),
        )
        note = f"to unsorted SciPy: {times['ours'] / times['SciPy']:.2f}"
        table.add(Row(name, times, times["ours"] / times["SciPy sorted"], note=note))

    for name, make in cases.items():
        measure(name, make())
    return table


def sddmm(cases: Matrices, quick: bool) -> Table:
    """Sampled dense-dense product."""
    table = Table("sddmm", "SDDMM, C[i,j] = A[i,j] * B[i,k] * D[j,k] with 32 k (CPU ms)",
                  "ours / NumPy")  # fmt: skip

    def measure(name: str, matrix: Any) -> None:
        rng = np.random.default_rng(1)
        b, d = (rng.random((n, 32)).astype(matrix.dtype) for n in matrix.shape)
        a = sc.asarray(matrix)
        rows = matrix.tocoo().row
        kernel = sc.compile("C[i,j] = A[i,j] * B[i,k] * D[j,k]", A=a, B=b, D=d, out="CSR")

        def peer() -> Any:
            return matrix.data * np.einsum("nk,nk->n", b[rows], d[matrix.indices])

        _close(kernel(A=a, B=b, D=d).values, peer(), name)
        times = interleaved({"ours": lambda: kernel(A=a, B=b, D=d), "NumPy": peer}, _rounds(quick))
        table.add(Row(name, times, times["ours"] / times["NumPy"]))

    for name, make in cases.items():
        measure(name, make())
    return table


def mttkrp(quick: bool) -> Table:
    """The tensor product of CP decompositions."""
    table = Table("mttkrp", "MTTKRP, M[i,r] = T[i,j,k] * B[j,r] * C[k,r], T in CSF (CPU ms)",
                  "ours, out= / SciPy")  # fmt: skip
    extent, entries = (100, 50_000) if quick else (500, 2_000_000)
    coordinates, values = matrices.tensor3(extent, entries)
    i, j, k = coordinates
    unfolded = sp.csr_array((values, (i, j * extent + k)), shape=(extent, extent * extent))
    t = sc.from_coords(coordinates, values, (extent,) * 3, format="CSF")

    def measure(rank: int) -> None:
        rng = np.random.default_rng(1)
        b, c = rng.random((extent, rank)), rng.random((extent, rank))
        m = np.empty((extent, rank))
        kernel = sc.compile("M[i,r] = T[i,j,k] * B[j,r] * C[k,r]", T=t, B=b, C=c)

        def peer() -> Any:
            return unfolded @ (b[:, None, :] * c[None, :, :]).reshape(-1, rank)

        _close(kernel(T=t, B=b, C=c), peer(), f"MTTKRP {rank}")
        times = interleaved(
            {
                "ours, out=": lambda: kernel(T=t, B=b, C=c, out=m),
                "ours, new result": lambda: kernel(T=t, B=b, C=c),
                "SciPy, unfolded": peer,
            },
            _rounds(quick),
        )
        ratio = times["ours, out="] / times["SciPy, unfolded"]
        table.add(Row(f"{extent}^3, {len(values)} entries, R = {rank}", times, ratio))

    for rank in (8, 32, 64):
        measure(rank)
    return table
