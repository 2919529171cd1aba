"""call-libraries: what is marked with a library's name becomes a call of it.

Before::

    %y = linalg.generic {maps = [(i, j) -> (i, j), (i, j) -> (j), (i, j) -> (i)], …}
        ins(%A, %x : tensor<?x?xf64>, tensor<?xf64>) outs(%zeros)
        attrs = {sparsecc.engine = "blas"} { mulf, addf } -> tensor<?xf64>

After::

    %y = iteration.library_call "blas"(%A, %x) as ["i", "j"], ["j"] -> ["i"]
        : (tensor<?x?xf64>, tensor<?xf64>) -> tensor<?xf64>

It runs when formats are chosen, and before anything is scheduled or recognised as a contraction. What the library
does not compute as the program means it is refused with the reason; nothing falls back to a generated kernel. The
engine ``generated`` says that there is no library.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, StringAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

from sparsecc.dialects import iteration
from sparsecc.dialects.reading import dtype_name
from sparsecc.dialects.sparse_tensor.types import ranked_tensor
from sparsecc.passes.selection.products import index_names, why_no_product
from sparsecc.passes.sparsification.host import drop_dead_host_ops, initial_value
from sparsecc.passes.sparsification.term import tensor_format
from sparsecc.selection.engines import EngineRefused, known_engine, refusal
from sparsecc.selection.problem import Access, Expression
from sparsecc.targets import known_target

ENGINE = "sparsecc.engine"


@dataclass(frozen=True)
class CallLibraries(ModulePass):
    """linalg.generic with a library's name -> iteration.library_call."""

    name = "call-libraries"

    target: str = "cpu"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for fn in [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]:
            marked = [
                g for g in fn.walk() if isinstance(g, linalg.GenericOp) and ENGINE in g.attributes
            ]
            for generic in marked:
                self._call(generic)
            if marked:
                drop_dead_host_ops(fn)

    def _call(self, generic: linalg.GenericOp) -> None:
        given = generic.attributes[ENGINE]
        name = given.data if isinstance(given, StringAttr) else str(given)
        library = known_engine(name)
        if library is None:
            del generic.attributes[ENGINE]
            return
        target = known_target(self.target)
        reason = why_no_product(generic)
        if library.backend != target.backend:
            reason = f"it does not compute for {target.name} ({target.title})"
        init = initial_value(generic)
        reason = reason or _refusal(generic, name, init)
        if reason is not None:
            raise EngineRefused(engine=library.title, expression=_source(generic), reason=reason)
        indices = index_names(generic)
        assert indices is not None and generic.parent is not None
        result = generic.results[0]
        call = iteration.LibraryCallOp(name, list(generic.inputs), init, indices, result.type)
        for key in ("sparsecc.source", "sparsecc.place", "sparsecc.format_reason"):
            if key in generic.attributes:
                call.attributes[key] = generic.attributes[key]
        generic.parent.insert_op_before(call, generic)
        call.result.name_hint = result.name_hint
        result.replace_all_uses_with(call.result)
        generic.detach()
        generic.erase()


def _source(generic: linalg.GenericOp) -> str:
    given = generic.attributes.get("sparsecc.source")
    return given.data if isinstance(given, StringAttr) else "a linalg.generic"


def _refusal(generic: linalg.GenericOp, engine: str, init: SSAValue | None) -> str | None:
    """Why a library does not compute a product, by its formats, types and extents."""
    indices = index_names(generic)
    assert indices is not None
    values = [*generic.inputs, generic.results[0]]
    names = _names(values)
    accesses = [Access(n, tuple(i)) for n, i in zip(names, indices, strict=True)]
    expression = Expression(accesses[-1], tuple(accesses[:-1]), True, _source(generic))
    extents: dict[str, int | None] = {}
    for value, access in zip(values, accesses, strict=True):
        type_ = ranked_tensor(value.type)
        if type_ is None:
            return f"{access.name} is no tensor"
        for index, extent in zip(access.indices, type_.get_shape(), strict=True):
            if extent != DYNAMIC_INDEX:
                extents[index] = extent
    return refusal(
        expression,
        {n: str(tensor_format(v.type)) for n, v in zip(names, values, strict=True)},
        {n: _dtype(v.type) for n, v in zip(names, values, strict=True)},
        engine,
        extents=extents,
        starts=init is not None,
    )


def _names(values: list[SSAValue]) -> list[str]:
    """What the program calls tensors; numbered where that would name two."""
    hints = [v.name_hint or "" for v in values]
    return [
        hint if hint and all(values[k] is v for k, h in enumerate(hints) if h == hint) else f"%{n}"
        for n, (hint, v) in enumerate(zip(hints, values, strict=True))
    ]


def _dtype(type_: Attribute) -> str:
    found = ranked_tensor(type_)
    assert found is not None
    return dtype_name(found.element_type) or str(found.element_type)
