"""Options that say how operands are stored or who chooses: --strategy --calls --size --plan --save-plan."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsecc.cli.operands import OPEN, FileOperand, Operand, pairs
from sparsecc.cli.output import write_text
from sparsecc.diagnostics import PassError, UsageError

if TYPE_CHECKING:
    from sparsecc.api import Kernel


def opened(named: Mapping[str, Operand], formats: Mapping[str, str]) -> dict[str, str]:
    """The operands of files whose formats are to be chosen: ``A=FILE:*``, or ``--format A=*``."""
    return {
        name: OPEN
        for name, operand in named.items()
        if isinstance(operand, FileOperand) and (operand.format or formats.get(name)) == OPEN
    }


def plan_options(options: Namespace) -> dict[str, Any]:
    """The options of ``api.compile`` that say how a plan is found. Raises UsageError, FileError."""
    given: dict[str, Any] = {}
    if options.strategy is not None:
        given["strategy"] = check_strategy(options.strategy)
    if options.calls is not None:
        given["calls"] = options.calls
    if options.size:
        given["sizes"] = parse_sizes(options.size)
    if options.plan is not None:
        from sparsecc.selection.saved_plans import plan_of

        given["plan"] = plan_of(Path(options.plan))
    return given


def check_strategy(name: str) -> str:
    """The name of a strategy, which has to be there. Raises UsageError."""
    from sparsecc.selection.registry import INFERRED, strategy

    if name != INFERRED:
        try:
            strategy(name)
        except PassError as error:
            raise UsageError(error.message, place="sparsecc", help=error.help) from None
    return name


def parse_sizes(texts: Iterable[str]) -> dict[str, int]:
    """``--size m=16``: extents by index. Raises UsageError."""
    sizes: dict[str, int] = {}
    for index, text in pairs(texts, "a size INDEX=NUMBER").items():
        if not text.isdecimal() or int(text) < 1:
            raise UsageError(
                f"{index}={text} is not a size",
                place="sparsecc",
                help="write a number of coordinates, at least 1: --size m=16",
            )
        sizes[index] = int(text)
    return sizes


def save_plan(kernel: Kernel, options: Namespace) -> None:
    """``--save-plan FILE``: what ``--plan FILE`` replays. Raises FileError."""
    if options.save_plan is not None:
        write_text(Path(options.save_plan), kernel.plan_json() + "\n")
