"""outside-mark: a pass of somebody else's package, which writes a word on every function.

func.func @f()   -->   func.func @f() attributes {outside.mark = "seen"}
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass


@dataclass(frozen=True)
class Mark(ModulePass):
    """The word is an option: ``outside-mark{word=hello}``."""

    name = "outside-mark"
    word: str = "seen"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner, FuncOp):
                inner.attributes["outside.mark"] = StringAttr(self.word)
