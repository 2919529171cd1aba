"""``#sparse_tensor.encoding``: a Format as the encoding of a tensor type, in upstream MLIR's syntax."""

from __future__ import annotations

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from sparsecc.formats import Format


@irdl_attr_definition
class EncodingAttr(Data[Format | None]):
    """How a tensor is stored; ``None`` is an encoding that select-formats has still to choose (``<*>``)."""

    name = "sparse_tensor.encoding"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Format | None:
        raise NotImplementedError

    def print_parameter(self, printer: Printer) -> None:
        if self.data is None:
            printer.print_string("<*>")
            return
        printer.print_string("<{ map = " + str(self.data) + " }>")
