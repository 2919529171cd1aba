"""The kernel of tensor decompositions: a sparse tensor of rank 3 against two factor matrices."""

from __future__ import annotations

import numpy as np

import sparsecc as sc

EXPRESSION = "Y[i,r] = B[i,k,l] * C[k,r] * D[l,r]"


def main() -> None:
    rng = np.random.default_rng(3)
    shape, rank = (30, 40, 50), 8
    coords = tuple(rng.integers(0, extent, 500) for extent in shape)
    C, D = rng.random((shape[1], rank)), rng.random((shape[2], rank))
    for format in ("CSF", "COO(3)", "CSF(2,0,1)"):
        B = sc.from_coords(coords, rng.random(500), shape).to(format)
        Y = sc.evaluate(EXPRESSION, B=B, C=C, D=D)
        assert np.allclose(Y, np.einsum("ikl,kr,lr->ir", B.to_numpy(), C, D))
        print(f"{format}: right")


if __name__ == "__main__":
    main()
