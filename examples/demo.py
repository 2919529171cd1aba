"""The main job on real data: graphs that networkx ships, and a physical problem built on the spot.

Every result is checked against an independent answer. Run it with ``make demo``.
"""

from __future__ import annotations

import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

import sparsecc as sc

Floats = npt.NDArray[np.float64]

GRAPHS = ("karate_club_graph", "les_miserables_graph")
PAGERANK = "p[i] = d * A[i,j] * q[j] + (1 - d) / n"
SPMV = "y[i] = A[i,j] * x[j]"
PATHS = "C[i,j] = A[i,k] * A[k,j]"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in GRAPHS:
            path = Path(folder) / f"{name}.mtx"
            graph = write_graph(name, path)
            pagerank(name, path, graph)
            two_steps(name, path)
    poisson(40)
    print("\nall results agree with independent answers")


# -- graphs ------------------------------------------------------------------------------------


def write_graph(name: str, path: Path) -> Any:
    """One of networkx's graphs as a Matrix Market file: A[i,j] is the weight of j -> i."""
    graph: Any = getattr(import_module("networkx"), name)()
    number = {node: k for k, node in enumerate(graph)}
    edges = [(number[v], number[u], weight) for u, v, weight in graph.edges(data="weight")]
    edges += [(u, v, weight) for v, u, weight in edges if u != v]  # the graphs are undirected
    rows, columns, weights = (np.array(side) for side in zip(*edges, strict=True))
    size = len(number)
    sc.from_coords((rows, columns), weights.astype(np.float64), (size, size)).save(path)
    return graph


def pagerank(name: str, path: Path, graph: Any, d: float = 0.85) -> None:
    """PageRank by its fixed point, one compiled kernel a step."""
    A = sc.read(path)
    out_weight = sc.evaluate("w[j] = A[i,j]", A=A)
    # Dividing a column by its sum keeps the pattern: the result can stay CSR.
    P = sc.evaluate("P[i,j] = A[i,j] * s[j]", A=A, s=1 / out_weight, out="CSR")
    n = int(A.shape[0])
    q: Floats = np.full(n, 1 / n)
    kernel = sc.compile(PAGERANK, A=P, q=q, d=d, n=n)
    start = perf_counter()
    change, steps = 1.0, 0
    while change > 1e-12 and steps < 1000:
        p: Floats = kernel(A=P, q=q, d=d, n=n)
        change = float(np.abs(p - q).sum())
        q = p
        steps += 1
    report(f"PageRank of {name} ({n} nodes, {A.nnz} entries)", PAGERANK, kernel)
    print(f"  {steps} steps in {(perf_counter() - start) * 1e3:.1f} ms")
    if find_spec("scipy") is not None:  # networkx's pagerank needs it
        ranks = import_module("networkx").pagerank(graph, alpha=d, tol=1e-14, max_iter=1000)
        expected: Floats = np.array([ranks[node] for node in graph])
        check("networkx.pagerank", q, expected)
    matrix = d * P.to_numpy()
    check("a dense solve", q, np.linalg.solve(np.eye(n) - matrix, np.full(n, (1 - d) / n)))


def two_steps(name: str, path: Path) -> None:
    """How many paths of two steps join each pair: a product of sparse matrices, CSR out."""
    A = sc.read(path).to("CSR")
    kernel = sc.compile(PATHS, A=A, out="CSR")
    C = kernel(A=A)
    report(f"two-step paths of {name} ({C.nnz} pairs joined)", PATHS, kernel)
    dense = A.to_numpy()
    check("NumPy's dense product", C.to_numpy(), dense @ dense)


# -- physics -----------------------------------------------------------------------------------


def poisson_matrix(n: int) -> Any:
    """The 5-point Laplacian of an n x n grid with the boundary held at 0."""
    point = np.arange(n * n).reshape(n, n)
    rows, columns = [point.ravel()], [point.ravel()]
    for a, b in ((point[1:], point[:-1]), (point[:, 1:], point[:, :-1])):
        rows += [a.ravel(), b.ravel()]
        columns += [b.ravel(), a.ravel()]
    values = np.concatenate([np.full(n * n, 4.0), *(np.full(len(r), -1.0) for r in rows[1:])])
    return sc.from_coords((np.concatenate(rows), np.concatenate(columns)), values, (n * n, n * n))


def poisson(n: int) -> None:
    """-u'' = 1 on a square, by conjugate gradients over a compiled SpMV."""
    A = poisson_matrix(n).to("CSR")
    b: Floats = np.full(n * n, 1 / (n + 1) ** 2)
    kernel = sc.compile(SPMV, A=A, x=b)
    u, r = np.zeros(n * n), b.copy()
    p, rr = r.copy(), float(r @ r)
    start = perf_counter()
    steps = 0
    while rr > 1e-24 and steps < n * n:
        Ap = kernel(A=A, x=p)
        alpha = rr / float(p @ Ap)
        u += alpha * p
        r -= alpha * Ap
        rr, old = float(r @ r), rr
        p = r + rr / old * p
        steps += 1
    report(f"Poisson's equation on {n} x {n} points ({A.nnz} entries)", SPMV, kernel)
    print(f"  {steps} steps of conjugate gradients in {(perf_counter() - start) * 1e3:.1f} ms")
    if find_spec("scipy") is not None:
        solve = import_module("scipy.sparse.linalg").spsolve
        check("SciPy's sparse solver", u, solve(A.to_scipy().tocsc(), b))
    else:
        check("a dense solve", u, np.linalg.solve(A.to_numpy(), b))


# -- what is said ------------------------------------------------------------------------------


def report(title: str, expression: str, kernel: Any) -> None:
    """What was compiled, how long it took, and which formats were chosen and why."""
    stages = ", ".join(f"{stage} {ms:.1f}" for stage, ms in kernel.times.items())
    print(f"\n{title}\n  {expression}")
    print(f"  compiled in {sum(kernel.times.values()):.1f} ms ({stages})")
    print("  formats: " + ", ".join(f"{name} {text}" for name, text in kernel.formats.items()))
    print("".join(f"  | {line}\n" for line in kernel.explain().splitlines()), end="")


def check(against: str, found: Any, expected: Any) -> None:
    """Stop unless two answers agree."""
    if not np.allclose(found, expected, rtol=1e-8, atol=1e-11):
        raise SystemExit(f"  WRONG: differs from {against}")
    print(f"  agrees with {against}: largest difference {np.abs(found - expected).max():.1e}")


if __name__ == "__main__":
    main()
