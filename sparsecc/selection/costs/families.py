"""Every kernel family with its units of work, and what a unit costs at first: before anybody has measured.

The numbers are seconds, from data sheets and from the tables in ``docs/benchmarks``. ``sparsecc calibrate`` and
``sparsecc.research.fit`` start from them, and keep those that their measurements do not reach."""

from __future__ import annotations

from collections.abc import Mapping

Units = Mapping[str, float]

_STREAM: Units = {
    "from_l2": 2.5e-11, "from_l3": 3e-11, "from_dram": 6e-11, "to_l2": 3e-11, "to_l3": 5e-11, "to_dram": 1.5e-10,
    "call": 1.2e-5,
}  # fmt: skip
_GATHER: Units = {"gather_l2": 1e-9, "gather_l3": 3e-9, "gather_dram": 1.2e-8}
_ROWS: Units = {"x_l2": 1.5e-11, "x_l3": 4e-11, "x_dram": 8e-11}
_STEPS: Units = {"wide": 2e-9, "narrow": 8e-10, "single": 8e-10}
_VECTOR: Units = {**_STREAM, **_GATHER, "entry": 8e-10, "row": 1.5e-9, "uneven": 2e-9}
_MATRIX: Units = {**_STREAM, **_ROWS, **_STEPS, "row": 2e-9, "uneven": 2e-9, "scattered": 3e-10}
_SAMPLED: Units = {**_STREAM, **_ROWS, "entry": 3e-9, "term": 2.8e-10, "row": 2e-9, "uneven": 2e-9}
_FIBERS: Units = {
    **_STREAM, **_ROWS, **_STEPS, "fiber": 3e-9, "fiber_wide": 2e-9, "fiber_narrow": 8e-10,
    "fiber_single": 8e-10,
}  # fmt: skip
_SCIPY: Units = {**_STREAM}

_EXTRA: Units = {"used": 5e-10, "slot": 3e-10, "slots": 5e-10, "pair": 3e-10, "pairs": 5e-10}

CPU: dict[str, Units] = {
    "spmv-rows": {**_VECTOR, **_EXTRA, "entry": 5e-10, "chain": 3e-10},
    "spmv-columns": {**_VECTOR, **_EXTRA, "soon": 2e-9},
    "spmv-blocks": {**_STREAM, **_GATHER, "block": 2e-9, "cell": 6e-10, "strip": 5e-10, "row": 2e-9, "uneven": 2e-9},
    "spmv-dense": {**_STREAM, "cell": 7e-10, "row": 2e-9},
    "spmm-rows": {**_MATRIX, **_EXTRA, "chain": 3e-10},
    "spmm-columns": {**_MATRIX, **_EXTRA, "again": 2e-10, "begin": 1e-8, "soon": 2e-9},
    "spmm-dense": _MATRIX,
    "spmm-blocks": {**_MATRIX, "block": 2e-9, "strip": 5e-10, "tall": 1e-10},
    "strided-rows": {**_MATRIX, **_EXTRA, "chain": 3e-10},
    "strided-columns": {**_MATRIX, **_EXTRA, "again": 2e-10, "begin": 1e-8, "soon": 2e-9},
    "strided-dense": _MATRIX,
    "strided-blocks": {**_MATRIX, "block": 2e-9, "strip": 5e-10, "tall": 1e-10},
    **{f"sddmm-{walk}": {**_SAMPLED, **_EXTRA} for walk in ("rows", "columns")},
    "sddmm-blocks": _SAMPLED,
    "sddmm-dense": _SAMPLED,
    **{f"mttkrp-{walk}": _FIBERS for walk in ("outer", "middle", "inner", "coordinates", "dense")},
    "general": {**_STREAM, "step": 3e-9, "convert": 8e-9},
    "blas-vector": {**_STREAM, "mac": 1.2e-10},
    "blas-matrix": {**_STREAM, "mac": 4e-11, "weight": 1e-11, "result": 2e-11},
    **{
        f"scipy-spmv-{name}": {**_SCIPY, **_GATHER, "entry": 8e-10, "row": 1.5e-9, "uneven": 2e-9, "chain": 3e-10}
        for name in ("csr", "csc", "coo")
    },
    "scipy-spmv-bsr": {
        **_SCIPY, **_GATHER, "block": 2e-9, "cell": 1e-9, "strip": 5e-10, "row": 2e-9, "uneven": 2e-9,
    },
    **{
        f"scipy-spmm-{name}": {
            **_SCIPY, **_ROWS, **_STEPS, "wide": 6e-9, "entry": 2e-9, "row": 2e-9, "uneven": 2e-9, "chain": 3e-10,
        }
        for name in ("csr", "csc", "coo")
    },
    "scipy-spmm-bsr": {
        **_SCIPY, **_ROWS, **_STEPS, "entry": 2e-9, "row": 2e-9, "uneven": 2e-9, "block": 5e-9,
        "strip": 1e-9, "tall": 1e-10,
    },
    **{
        f"conversion-{route}": {"entry": entry, "cell": cell, "call": 2e-5}
        for route, entry, cell in (
            ("relabel", 1e-9, 0.0), ("transpose", 8e-9, 0.0), ("blocks", 2.5e-8, 1e-9),
            ("dense", 1e-8, 1e-9), ("fill", 5e-9, 1e-9), ("across", 1e-8, 1e-8), ("pack", 8e-8, 1e-8),
            ("share", 8e-8, 1e-8), ("bits", 8e-8, 1e-8), ("order", 1e-8, 1e-9), ("turn", 2e-8, 1e-9),
            ("sort", 8e-8, 1e-9),
        )
    },
}  # fmt: skip

_COLD, _WARM = 1 / 4.4e12, 1 / 6e12
_READ: Units = {"cold": _COLD, "warm": _WARM, "call": 3.2e-6}
_HALF = 1 / 3.5e14
"""Seconds of a multiplication of 16 bits by matrix units at what they reach (700 Tflop/s)."""
_FRAGMENTS: Units = {"x_l2": 2e-13, "x_turned": 3e-13, "wave": 2e-7}
_GATHERED: Units = {"x_l2": 1 / 6e12, "x_dram": 1 / 2.5e12, "entry": 1e-11, "segment": 2e-10}

GPU: dict[str, Units] = {
    "2:4-ring": {**_READ, **_FRAGMENTS, "mac": _HALF},
    "2:4-staged": {**_READ, **_FRAGMENTS, "mac": _HALF},
    "2:4-warpgroup": {**_READ, **_FRAGMENTS, "mac": _HALF},
    "2:4-spread": {**_READ, **_FRAGMENTS, "mac": 2 * _HALF},
    "2:4+CSR": {
        **_READ, **_FRAGMENTS, "reread": _WARM, "mac": _HALF, "entry": 5e-13, "decode": 1e-13,
    },
    **{
        f"blocks-{size}": {
            **_READ, "mac_8": _HALF, "mac_16": 3 * _HALF, "mac_32": 12 * _HALF, "mac_64": 24 * _HALF,
            "x_l2": 1.3e-13, "x_turned": 2e-13, "block": 1e-11, "wave": 5e-7, "long": 1e-7,
        }
        for size in (16, 32, 64)
    },
    "bitmap": {
        **_READ, **_FRAGMENTS, "mac": _HALF, "decode": 5e-13, "entry": 1e-13, "long": 1.8e-6,
    },
    **{
        f"segments-{bits}": {**_READ, **_GATHERED, "long": 1e-9}
        for bits in ("8", "16", "32", "64")
    },
    "rows-general": {**_READ, **_GATHERED, "term": 4e-12, "program": 1e-10, "long": 2e-8},
    "vector-groups": {**_READ, "entry": 1.9e-12, "segment": 1e-11, "long": 1e-10},
    "vector-bins": {**_READ, "entry": 2e-12, "segment": 1e-11, "long": 1e-10},
    "dense-general": {**_READ, "mac": 1e-13, "long": 1e-7},
    "sampled": {**_READ, **_GATHERED, "call": 4e-6},
    "sampled-dense": {**_READ, "mac": 2e-13},
    "general": {**_READ, "step": 1e-10},
    **{
        f"cublas-{bits}": {**_READ, "mac": mac, "wave": 1e-11, "call": 4e-6, "split": 1.5e-6}
        for bits, mac in (("8", _HALF / 2), ("16", _HALF), ("32", 1 / 2.5e13), ("64", 1 / 2.5e13))
    },
    **{f"cublas-vector-{bits}": {"cold": _COLD, "call": 3e-6} for bits in ("8", "16", "32", "64")},
    # Its search finds nothing fast for few columns of bf16.
    **{
        f"cusparselt-{dtype}": {**_READ, "cold": cold, "mac": 1 / 3.1e14, "wave": 1e-11, "call": 5e-6}
        for dtype, cold in (("f16", _COLD), ("bf16", 2.5 * _COLD))
    },
    **{
        f"cusparse-{bits}": {**_READ, **_GATHERED, "x_l2": 6e-14, "long": 1e-8, "call": 1.5e-5}
        for bits in ("8", "16", "32", "64")
    },
    **{
        f"cusparse-turned-{bits}": {
            **_READ, "entry": 2e-12, "term": 2e-12, "segment": 5e-11, "call": 1e-5,
        }
        for bits in ("8", "16", "32", "64")
    },
    **{
        f"cusparse-vector-{bits}": {**_READ, "entry": 1.7e-12, "segment": 2e-11, "call": 8e-6}
        for bits in ("8", "16", "32", "64")
    },
    **{
        f"conversion-{route}": {"entry": entry, "cell": cell, "call": 2e-4}
        for route, entry, cell in (
            ("relabel", 1e-11, 0.0), ("transpose", 2e-10, 0.0), ("blocks", 2e-10, 1e-11),
            ("dense", 2e-11, 5e-12), ("fill", 2e-11, 5e-12), ("across", 2e-11, 1e-11), ("pack", 2e-10, 5e-11),
            ("share", 2e-10, 5e-11), ("bits", 2e-10, 5e-11), ("order", 2e-10, 1e-11), ("turn", 3e-10, 1e-11),
            ("sort", 5e-10, 1e-11),
        )
    },
}  # fmt: skip

FAMILIES: dict[str, dict[str, Units]] = {"cpu": CPU, "triton": GPU}
"""By backend."""
SIZES: dict[str, dict[str, float]] = {
    "cpu": {"l1": 32e3, "l2": 1e6, "l3": 16e6},
    "triton": {"l2": 50e6, "processors": 132},
}
"""What a machine has, where nobody says: bytes of its caches, processors."""
