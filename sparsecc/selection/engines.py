"""Engines: the libraries that may compute an expression, what each takes, and which are here.

``refusal`` is the only judge: the space of plans asks it before anything is compiled, ``call-libraries`` asks it of
the IR.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from sparsecc.diagnostics import TargetError, UnsupportedError, UsageError
from sparsecc.formats import Format, known_name, parse_format
from sparsecc.selection.candidate import GENERATED
from sparsecc.selection.problem import Access, Expression
from sparsecc.selection.products import MatrixProduct, NoMatrixProduct, matrix_product
from sparsecc.targets import Target, known_target


class EngineRefused(UnsupportedError):
    text = "{engine} can't compute {expression}: {reason}"
    help_text = "leave it to the compiler (engine 'generated'), or change what the reason names"


class UnknownEngine(UsageError):
    text = "there is no engine {name!r}"


class LibraryAbsent(TargetError):
    text = "{title} is not here: {reason}"
    help_text = "{remedy}; or leave the expression to the compiler (engine 'generated')"


@dataclass(frozen=True)
class Engine:
    """A library. ``call`` is how it is called, ``dtypes`` what it takes (operands and result alike)."""

    name: str
    title: str
    backend: str
    """Of the targets that it computes for: ``cpu`` or ``triton``."""
    call: str
    packages: tuple[str, ...]
    """What has to be installed, as it is imported."""
    remedy: str
    dtypes: tuple[str, ...]
    sparse: tuple[str, ...] = ()
    """Names of the formats of its sparse operand; none: both operands are dense."""
    layout: str = ""
    """How it reads that packed, where it does."""
    batches: bool = False
    """Whether it takes indices beyond those of two matrices."""
    starts: bool = False
    """Whether it adds to what a result holds."""
    others: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why element types that one might expect are not among ``dtypes``."""


_NARROW = "the expression is computed in f32, which no library on the CPU does for 16 bits"
_INTEGERS = dict.fromkeys(
    ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"),
    "BLAS has no integers; NumPy's own loops for them are slower than generated ones",
)
_TORCH = "install torch for CUDA"

ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine(
            "blas", "BLAS", "cpu", "numpy.matmul", (), "",
            ("f32", "f64", "c64", "c128"), batches=True, starts=True,
            others={"f16": _NARROW, "bf16": _NARROW, **_INTEGERS},
        ),
        Engine(
            "scipy", "SciPy", "cpu", "scipy.sparse", ("scipy",), "pip install scipy",
            ("f32", "f64", "c64", "c128", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"),
            ("CSR", "CSC", "BSR", "COO"), starts=True, others={"f16": _NARROW, "bf16": _NARROW},
        ),
        Engine(
            "cublas", "cuBLAS", "triton", "torch.matmul", ("torch",), _TORCH,
            ("f16", "bf16", "f32", "f64"), batches=True,
        ),
        Engine(
            "cusparselt", "cuSPARSELt", "triton", "torch._cslt_sparse_mm", ("torch", "nvidia.cusparselt"),
            "install a torch for CUDA that has cuSPARSELt", ("f16", "bf16"), ("2:4",), "cuSPARSELt",
            others={"f32": "it would be rounded to tf32"},
        ),
        Engine(
            "cusparse", "cuSPARSE", "triton", "torch.mm of a CSR tensor", ("torch",), _TORCH,
            ("f16", "bf16", "f32", "f64"), ("CSR",),
        ),
    )
}  # fmt: skip
"""By name. What computes everything else is the engine ``generated``."""

SPARSELT_MULTIPLE = 16
"""What both extents of cuSPARSELt's weight of 16-bit floats are multiples of (through torch)."""


def known_engine(name: str) -> Engine | None:
    """An engine by name, None for what is generated. Raises UnknownEngine."""
    if name == GENERATED:
        return None
    if name not in ENGINES:
        raise UnknownEngine(name=name, help=f"known: {', '.join((GENERATED, *ENGINES))}")
    return ENGINES[name]


def of_target(target: str | Target) -> tuple[str, ...]:
    """The libraries that compute for a target, there or not."""
    found = known_target(target) if isinstance(target, str) else target
    return tuple(name for name, engine in ENGINES.items() if engine.backend == found.backend)


def present(target: str | Target) -> frozenset[str]:
    """The libraries for a target that are installed here; no library is imported to find out."""
    return frozenset(n for n in of_target(target) if all(map(_there, ENGINES[n].packages)))


SPARSELT = ("nvidia.cusparselt", "cusparselt")
"""Where builds of torch have the library from."""


def _there(package: str) -> bool:
    """Whether a package can be imported; of cuSPARSELt, whether torch has it."""
    if package in SPARSELT:
        torch: Any = sys.modules.get("torch")
        if torch is not None:
            return bool(torch.backends.cusparselt.is_available())
        return any(map(_found, SPARSELT))
    return package in sys.modules or _found(package)


def _found(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # the package above it is not there
        return False


def refusal(
    expression: Expression,
    formats: Mapping[str, str | None],
    dtypes: Mapping[str, str],
    engine: str,
    *,
    extents: Mapping[str, int | None] | None = None,
    starts: bool = False,
) -> str | None:
    """Why a library does not compute an expression; None: it does.

    ``formats`` (dense where a tensor is not named, or has None) and ``dtypes`` are of its tensors by name, the result
    included; ``extents`` of its indices, where they are known. ``starts``: it adds to a result that is there. Raises
    UnknownEngine."""
    library = known_engine(engine)
    if library is None:
        return None
    if not expression.product or len(expression.inputs) != 2:
        return "it is not the sum of one product of two tensors"
    accesses = (*expression.inputs, expression.result)
    try:
        product = matrix_product(*(a.indices for a in accesses))
    except NoMatrixProduct as problem:
        return str(problem)
    found = {a.name: _parsed(formats.get(a.name) or "dense", a) for a in accesses}
    return (
        _wrong_dtypes(library, [dtypes[a.name] for a in accesses])
        or _wrong_result(expression, found)
        or _wrong_operands(library, expression, found, product)
        or _wrong_shape(library, expression, found, extents or {})
        or ("it adds to a tensor that it is given" if starts and not library.starts else None)
    )


def _parsed(spelling: str, access: Access) -> Format:
    return parse_format(spelling, len(access.indices))


def is_plain(fmt: Format) -> bool:
    """Whether a format is an array without blocks, in any order of its dimensions."""
    return fmt.is_dense and fmt.is_permutation


def sparse_operand(expression: Expression, formats: Mapping[str, Format]) -> int | None:
    """The number of the only operand that is not dense; None if there is none or both are."""
    found = [k for k, a in enumerate(expression.inputs) if not is_plain(formats[a.name])]
    return found[0] if len(found) == 1 else None


def _wrong_dtypes(library: Engine, dtypes: list[str]) -> str | None:
    if len(set(dtypes)) > 1:
        return (
            f"its tensors are {', '.join(dict.fromkeys(dtypes))}; a library converts none of them"
        )
    dtype = dtypes[0]
    if dtype in library.dtypes:
        return None
    more = library.others.get(dtype, "")
    return f"it takes {' '.join(library.dtypes)}, not {dtype}" + (f": {more}" if more else "")


def _wrong_result(expression: Expression, formats: Mapping[str, Format]) -> str | None:
    result = expression.result.name
    if is_plain(formats[result]):
        return None
    return f"the result {result} is {known_name(formats[result])}; a library gives a dense one"


def _wrong_operands(
    library: Engine, expression: Expression, formats: Mapping[str, Format], product: MatrixProduct
) -> str | None:
    stored = [(a.name, known_name(formats[a.name])) for a in expression.inputs]
    spelled = " and ".join(f"{name} is {kind}" for name, kind in stored)
    sparse = sparse_operand(expression, formats)
    if not library.sparse:
        plain = all(is_plain(formats[a.name]) for a in expression.inputs)
        return None if plain else f"it takes dense operands; {spelled}"
    takes = ", ".join(library.sparse)
    if sparse is None:
        return f"it takes one operand in {takes} and a dense one; {spelled}"
    access = expression.inputs[sparse]
    kind = known_name(formats[access.name])
    if len(access.indices) != 2 or kind.partition("(")[0] not in library.sparse:
        return f"it takes one operand in {takes} and a dense one; {spelled}"
    if library.backend == "triton" and access.indices[-1] != product.summed:
        what = "groups of four" if library.name == "cusparselt" else "rows"
        return (
            f"the {what} of {access.name} do not run along {product.summed}, which is summed over"
        )
    if product.batch and not library.batches:
        return f"index {product.batch[0]} is one more than those of a matrix product"
    return _wrong_widths(access.name, formats[access.name])


def _wrong_widths(name: str, format: Format) -> str | None:
    """Libraries have one type for positions and coordinates, of 32 or 64 bits."""
    widths = (format.pos_width or 32, format.crd_width or 32)
    if widths in ((32, 32), (64, 64)) or known_name(format) == "2:4":
        return None
    found = " and ".join(f"{width} bits" for width in widths)
    return f"positions and coordinates of {name} have {found}; it takes 32 or 64 for both"


def _wrong_shape(
    library: Engine,
    expression: Expression,
    formats: Mapping[str, Format],
    extents: Mapping[str, int | None],
) -> str | None:
    sparse = sparse_operand(expression, formats)
    if sparse is None:
        return None
    access = expression.inputs[sparse]
    shape = [extents.get(index) for index in access.indices]
    return wrong_extents(library.name, access.name, formats[access.name], shape)


def wrong_extents(
    engine: str, name: str, format: Format, shape: Sequence[int | None]
) -> str | None:
    """Why a library does not take its sparse operand, a matrix of that shape (None: not known); None: it does."""
    kind = known_name(format)
    multiples = (SPARSELT_MULTIPLE,) * 2 if engine == "cusparselt" else (1, 1)
    if kind.startswith("BSR("):
        multiples = (format.exprs[0].div, format.exprs[1].div)
    for extent, multiple in zip(shape, multiples, strict=True):
        if extent is not None and extent % multiple:
            return f"{name} has an extent of {extent}, which is no multiple of {multiple}: pad it"
    return None
