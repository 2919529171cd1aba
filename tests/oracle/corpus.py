"""The acceptance list of this release: expressions by stable numbers, and formats to try first.

Tensors that are not named in ``formats`` are dense; the name of a result stands for the output.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One expression of the corpus."""

    number: int
    name: str
    text: str
    formats: dict[str, str]


def _row(number: int, name: str, text: str, **formats: str) -> Row:
    return Row(number, name, text, formats)


ROWS = (
    _row(1, "scale", "y(i) = 2.5 * x(i)", x="s"),
    _row(2, "axpy", "y(i) = a * x(i) + z(i)", x="s", z="s"),
    _row(3, "dot", "s = x(i) * y(i)", x="s", y="s"),
    _row(4, "spmv", "y(i) = A(i,j) * x(j)", A="ds"),
    _row(5, "spmv_csc", "y(i) = A(i,j) * x(j)", A="ds:1,0"),
    _row(6, "spmv_coo", "y(i) = A(i,j) * x(j)", A="uq"),
    _row(7, "spmspv", "y(i) = A(i,j) * x(j)", A="ss", x="s", y="s"),
    _row(8, "spmv_t", "y(j) = A(i,j) * x(i)", A="ds"),
    _row(9, "residual", "y(i) = b(i) - A(i,j) * x(j)", A="ds"),
    _row(10, "mattransmul", "y(i) = a * A(j,i) * x(j) + b * z(i)", A="ds"),
    _row(11, "bilinear", "s = x(i) * A(i,j) * y(j)", A="ds"),
    _row(12, "spmm", "C(i,j) = A(i,k) * X(k,j)", A="ds"),
    _row(13, "spmm_bsr", "C(i,j) = A(i,k) * X(k,j)", A="BSR(2,2)"),
    _row(14, "spgemm", "C(i,j) = A(i,k) * B(k,j)", A="ds", B="ds", C="ds"),
    _row(15, "spgemm_inner", "C(i,j) = A(i,k) * B(j,k)", A="ds", B="ds", C="ds"),
    _row(19, "sddmm", "C(i,j) = A(i,j) * U(i,k) * V(k,j)", A="ds", C="ds"),
    _row(20, "sddmm_t", "C(i,j) = A(i,j) * U(i,k) * V(j,k)", A="ds", C="ds"),
    _row(21, "fused_sddmm_spmm", "Y(i,l) = A(i,j) * U(i,k) * V(j,k) * W(j,l)", A="ds"),
    _row(
        22,
        "masked_spgemm",
        "C(i,j) = M(i,j) * A(i,k) * B(k,j)",
        M="ds",
        A="ds",
        B="ds:1,0",
        C="ds",
    ),
    _row(23, "add2", "C(i,j) = A(i,j) + B(i,j)", A="ds", B="ds", C="ds"),
    _row(24, "plus3", "C(i,j) = A(i,j) + B(i,j) + D(i,j)", A="ds", B="ss", D="uq", C="ds"),
    _row(26, "sub", "C(i,j) = A(i,j) - B(i,j)", A="ds", B="ds", C="ds"),
    _row(27, "elmul", "C(i,j) = A(i,j) * B(i,j)", A="ds", B="ds", C="ds"),
    _row(
        28, "union_intersect", "C(i,j) = (A(i,j) + B(i,j)) * D(i,j)", A="ds", B="ds", D="ds", C="ds"
    ),
    _row(30, "row_scale", "C(i,j) = r(i) * A(i,j)", A="ds", C="ds"),
    _row(31, "diag_both", "C(i,j) = r(i) * A(i,j) * c(j)", A="ds", C="ds"),
    _row(32, "rowsum", "y(i) = A(i,j)", A="ds"),
    _row(33, "colsum", "y(j) = A(i,j)", A="ds"),
    _row(34, "total", "s = A(i,j)", A="ds"),
    _row(35, "frob2", "s = A(i,j) * A(i,j)", A="ds"),
    _row(36, "trace", "s = A(i,i)", A="ds"),
    _row(37, "diag", "d(i) = A(i,i)", A="ds", d="s"),
    _row(39, "outer", "C(i,j) = x(i) * y(j)", x="s", y="s", C="ss"),
    _row(40, "ttv", "A2(i,j) = B(i,j,k) * c(k)", B="sss", A2="ss"),
    _row(41, "ttm", "Y(i,j,l) = B(i,j,k) * C(k,l)", B="sss", Y="ssd"),
    _row(42, "mttkrp", "Y(i,r) = B(i,k,l) * C(k,r) * D(l,r)", B="sss"),
    _row(43, "mttkrp4", "Y(i,r) = B(i,k,l,m) * C(k,r) * D(l,r) * E(m,r)", B="ssss"),
    _row(45, "innerprod3", "s = B(i,j,k) * C(i,j,k)", B="sss", C="sss"),
    _row(46, "tensor_plus", "Y(i,j,k) = B(i,j,k) + C(i,j,k)", B="sss", C="sss", Y="sss"),
    _row(47, "tucker_core", "Y(a2,b2,c2) = B(i,j,k) * U(i,a2) * V(j,b2) * W(k,c2)", B="sss"),
    _row(49, "batched_spmm", "C(b,i,j) = A(b,i,k) * X(b,k,j)", A="dds"),
    _row(50, "pagerank", "p(i) = d * A(i,j) * q(j) + (1 - d) / n", A="ds"),
    _row(66, "embedding_bag", "Y[b,k] = B[b,v] * T[v,k]", B="ds"),
    _row(68, "nm_linear", "Y[b,o] = X[b,k] * W[o,k] + bias[o]", W="2:4"),
)
