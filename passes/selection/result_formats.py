"""What formats the rules of ``inferred`` give to the results of a function, for formats of operands that a plan has in
mind: the rules themselves are run, on a copy of the function.

A strategy asks for many plans, so answers are kept by expression and by the formats of what it reads."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from sparsecc.dialects.sparse_tensor import EncodingAttr
from sparsecc.dialects.sparse_tensor.types import ranked_tensor
from sparsecc.formats import Format, known_name, parse_format
from sparsecc.passes.selection.inferred import default_format, inferred_result, set_type
from sparsecc.passes.selection.read_problem import View, read_function
from sparsecc.passes.sparsification.term import NotSparsifiable


class ResultFormats:
    """Formats of results by name, for formats by name; made before a plan is written into the function."""

    def __init__(self, view: View) -> None:
        self.view = read_function(view.function.clone())
        self.names = {value: name for name, value in self.view.values.items()}
        self.known: dict[tuple[int, tuple[str, ...]], str | None] = {}
        self.lock = Lock()

    def __call__(self, formats: Mapping[str, str]) -> dict[str, str]:
        """The formats of all results. What a plan does not name has the format of its type, or the default of an open
        operand; a result that can't be compiled is left out."""
        found: dict[str, str] = {}
        with self.lock:
            for number, expression in enumerate(self.view.expressions):
                name = expression.result.name
                fmt = self._spelled(name, {**found, **formats})
                if name not in formats and self.view.tensors[name].open:
                    fmt = self._inferred(number, {**found, **formats})
                if fmt is not None:
                    found[name] = fmt
        return found

    def _spelled(self, name: str, formats: Mapping[str, str]) -> str:
        known = self.view.tensors[name]
        return formats.get(name) or known.format or known_name(default_format(len(known.shape)))

    def _inferred(self, number: int, formats: Mapping[str, str]) -> str | None:
        generic = self.view.generics[number]
        init = generic.outputs[0]
        if not isinstance(init.owner, tensor.EmptyOp | linalg.FillOp):
            return self._spelled(
                self.names[init], formats
            )  # it starts from a tensor of the program
        key = (number, tuple(self._spelled(self.names[v], formats) for v in generic.inputs))
        if key not in self.known:
            for value, spelling in zip(generic.inputs, key[1], strict=True):
                _retype(value, parse_format(spelling, _rank(value)))
            try:
                self.known[key] = known_name(inferred_result(generic)[0])
            except NotSparsifiable:  # the compiler says so of any plan
                self.known[key] = None
        return self.known[key]


def _rank(value: SSAValue) -> int:
    type_ = ranked_tensor(value.type)
    return 0 if type_ is None else len(type_.get_shape())


def _retype(value: SSAValue, fmt: Format) -> None:
    type_ = ranked_tensor(value.type)
    if type_ is None:
        return
    if fmt.is_row_major:
        set_type(value, TensorType(type_.element_type, type_.shape))
    else:
        set_type(value, TensorType(type_.element_type, type_.shape, EncodingAttr(fmt)))
