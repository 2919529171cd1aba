"""A printer that names encodings at the top: ``#CSR = #sparse_tensor.encoding<...>``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from io import StringIO

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.printer import Printer

from sparsecc.dialects.sparse_tensor.attributes import EncodingAttr, spell_encoding
from sparsecc.formats import Format, SumFormat, known_name


class AsmPrinter(Printer):
    """Prints aliases in place of encodings, a trailing comment behind each op that has one, and
    above each kernel the expression that it came from (its attribute ``sparsecc.source``).

    Aliases are given as encodings are met; :meth:`alias_definitions` is what has to stand above.
    """

    def __init__(
        self, stream: StringIO | None = None, comments: Mapping[Operation, str] | None = None
    ) -> None:
        super().__init__(stream)
        self.aliases: dict[EncodingAttr, str] = {}
        self.comments = comments or {}

    def print_attribute(self, attribute: Attribute) -> None:
        if isinstance(attribute, EncodingAttr):
            self.print_string("#" + self.alias(attribute))
        else:
            super().print_attribute(attribute)

    def print_op(self, op: Operation) -> None:
        source = op.attributes.get("sparsecc.source") if isinstance(op, FuncOp) else None
        if isinstance(source, StringAttr):
            self.print_string("// " + source.data.replace("\n", " "))
            self._print_new_line()
        super().print_op(op)
        if comment := self.comments.get(op):
            self.print_string("  // " + comment.replace("\n", " "))

    def alias(self, encoding: EncodingAttr) -> str:
        """The alias of an encoding; a new one where it is met for the first time."""
        if encoding not in self.aliases:
            wanted = name = alias_name(encoding.data)
            number = 1
            while name in self.aliases.values():
                name, number = f"{wanted}_{number}", number + 1
            self.aliases[encoding] = name
        return self.aliases[encoding]

    def alias_definitions(self) -> str:
        """A line for each alias given so far."""
        return "".join(
            f"#{name} = #{encoding.name}<{spell_encoding(encoding.data)}>\n"
            for encoding, name in self.aliases.items()
        )


def alias_name(fmt: Format | None) -> str:
    """``CSR``, ``BSR_2_2``, ``NM_2_4``, ``CSR_i32``; ``SPARSE`` for formats without a name."""
    if fmt is None:
        return "ANY"
    short = known_name(fmt)
    if isinstance(fmt, SumFormat):
        short = f"SUM:{short}" if "(d0" not in short else "SUM"
    elif re.fullmatch(r"\d+:\d+", short):
        short = f"NM:{short}"
    if short.startswith("("):
        short = "DENSE" if fmt.is_dense else "SPARSE"
    words = re.findall(r"\w+", short.upper())
    if fmt.pos_width == fmt.crd_width != 0:
        return "_".join([*words, f"i{fmt.pos_width}"])
    widths = {"p": fmt.pos_width, "c": fmt.crd_width}
    return "_".join(words + [f"{letter}{width}" for letter, width in widths.items() if width])


def print_module(module: ModuleOp, comments: Mapping[Operation, str] | None = None) -> str:
    """The text of a module, aliases first. ``comments`` are printed behind their operations."""
    stream = StringIO()
    printer = AsmPrinter(stream, comments)
    printer.print_op(module)
    return printer.alias_definitions() + stream.getvalue() + "\n"
