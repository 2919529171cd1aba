"""A sparse matrix times a tall dense one: the product behind graph networks and block solvers."""

from __future__ import annotations

import numpy as np

import sparsecc as sc

EXPRESSION = "C[i,j] = A[i,k] * X[k,j]"


def main() -> None:
    rng = np.random.default_rng(1)
    dense = np.where(rng.random((200, 300)) < 0.05, rng.random((200, 300)), 0)
    X = rng.random((300, 32))
    for format in ("CSR", "CSC", "BSR(4,4)"):
        A = sc.asarray(dense).to(format)
        kernel = sc.compile(EXPRESSION, A=A, X=X)
        C = kernel(A=A, X=X)
        assert np.allclose(C, dense @ X)
        print(f"{format}: compiled in {sum(kernel.times.values()):.1f} ms, right")


if __name__ == "__main__":
    main()
