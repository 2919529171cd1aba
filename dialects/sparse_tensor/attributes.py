"""``#sparse_tensor.encoding``: a Format as the encoding of a tensor type, in upstream's syntax.

A sum of formats is ours alone: ``#sparse_tensor.encoding<{ sum = [#NM_2_4, #CSR] }>``.
"""

from __future__ import annotations

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from sparsecc.dialects.sparse_tensor.encoding_parser import EncodingParser
from sparsecc.formats import Format, SumFormat


@irdl_attr_definition
class EncodingAttr(Data[Format | None]):
    """How a tensor is stored; ``None`` (``<*>``) is an encoding that is still to be chosen."""

    name = "sparse_tensor.encoding"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Format | None:
        return EncodingParser(parser).parse()

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{spell_encoding(self.data)}>")


def spell_encoding(fmt: Format | None) -> str:
    """What stands between the angle brackets, as ``mlir-opt`` prints it."""
    if fmt is None:
        return "*"
    if isinstance(fmt, SumFormat):
        parts = (f"#{EncodingAttr.name}<{spell_encoding(part)}>" for part in fmt.parts)
        return f"{{ sum = [{', '.join(parts)}] }}"
    entries = [f"map = {fmt.with_widths(0, 0)}"]
    if fmt.pos_width:
        entries.append(f"posWidth = {fmt.pos_width}")
    if fmt.crd_width:
        entries.append(f"crdWidth = {fmt.crd_width}")
    return "{ " + ", ".join(entries) + " }"
