"""A dense product sampled at the entries of a sparse matrix: nothing else of it is computed."""

from __future__ import annotations

import numpy as np

import sparsecc as sc

EXPRESSION = "C[i,j] = A[i,j] * U[i,k] * V[k,j]"


def main() -> None:
    rng = np.random.default_rng(2)
    dense = np.where(rng.random((120, 150)) < 0.03, 1.0, 0)
    U, V = rng.random((120, 16)), rng.random((16, 150))
    A = sc.asarray(dense).to("CSR")
    kernel = sc.compile(EXPRESSION, A=A, U=U, V=V, out="CSR")
    C = kernel(A=A, U=U, V=V)
    assert np.allclose(C.to_numpy(), dense * (U @ V))
    assert C.nnz == A.nnz
    print(f"{C.nnz} of {dense.size} entries computed, right")
    print(kernel.explain())


if __name__ == "__main__":
    main()
