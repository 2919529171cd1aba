"""The table of commands, and the options of each; what a command does is loaded when it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from sparsecc.cli.bench_options import bench
from sparsecc.cli.counts import count, positive, some_calls
from sparsecc.diagnostics import UsageError, did_you_mean

EMIT_ALL = ("tensor", "selected", "iteration")
EMIT_CPU = ("loops", "llvm", "c", "asm")
EMIT_GPU = ("tiles", "triton", "ptx", "sass")

Parser = argparse.ArgumentParser


@dataclass(frozen=True)
class Command:
    """One command: ``options`` fills its parser, ``action`` is ``module:function``."""

    name: str
    summary: str
    options: Callable[[Parser], None]
    action: str

    def run(self, arguments: Sequence[str]) -> int:
        """Parse the arguments and do what they say."""
        if self.name == "run":
            from sparsecc.cli.taco import is_taco, translate

            if is_taco(arguments):
                name, arguments = translate(arguments)
                return COMMANDS[name].parse_and_act(arguments)
        return self.parse_and_act(arguments)

    def parse_and_act(self, arguments: Sequence[str]) -> int:
        """The same for arguments in our own spelling."""
        parser = Parser(prog=f"sparsecc {self.name}", description=self.summary, allow_abbrev=False)
        self.options(parser)
        # Not an option that a command reads: main() takes it out. Here for the help text.
        parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
        parsed = parser.parse_intermixed_args(arguments)
        parsed.command = self.name
        module, _, function = self.action.partition(":")
        getattr(import_module(module), function)(parsed)
        return 0


class Group(Command):
    """A command of several commands of its own; ``action`` is their table."""

    def run(self, arguments: Sequence[str]) -> int:
        """Run the one that is named."""
        module, _, name = self.action.partition(":")
        commands: dict[str, Command] = getattr(import_module(module), name)
        lines = [f"usage: sparsecc {self.name} COMMAND …", "", self.summary, ""]
        lines += [f"  {name:11}{command.summary}" for name, command in commands.items()]
        if arguments and arguments[0] in commands:
            return commands[arguments[0]].run(arguments[1:])
        if not arguments:
            print("\n".join(lines), file=sys.stderr)
            return 2
        if arguments[0] in ("-h", "--help", "help"):
            print("\n".join(lines))
            return 0
        raise UsageError(
            f"there is no command {self.name} {arguments[0]!r}", place="sparsecc",
            help=did_you_mean(arguments[0], list(commands)),
        )  # fmt: skip


def _program(parser: Parser) -> None:
    parser.add_argument(
        "program", metavar="EXPR|FILE.mlir", help="a tensor expression, or a file of MLIR text"
    )
    parser.add_argument(
        "operands",
        nargs="*",
        metavar="NAME=FILE[:FORMAT]",
        help="an operand: a .mtx .tns .npz .npy file, or a number; FILE:* lets a strategy choose the format",
    )
    parser.add_argument("--target", default="cpu", help="see 'sparsecc targets' (default: cpu)")
    parser.add_argument(
        "--entry",
        default="main",
        metavar="NAME",
        help="the function of an .mlir file (default: main)",
    )
    parser.add_argument("--out-format", metavar="FORMAT", help="the format of the result")
    parser.add_argument(
        "--out-dtype",
        metavar="DTYPE",
        help="the type of the result: operands are converted to it before they are multiplied",
    )
    parser.add_argument(
        "--format",
        action="append",
        default=[],
        metavar="NAME=FORMAT",
        help="the format of an operand; '*' to have it chosen",
    )
    parser.add_argument(
        "--dtype",
        action="append",
        default=[],
        metavar="[NAME=]DTYPE",
        help="the type of an operand's values, or of all operands'",
    )
    _plan(parser)


def _plan(parser: Parser) -> None:
    parser.add_argument(
        "--strategy",
        metavar="NAME|PACKAGE.MODULE:CLASS",
        help="who chooses open formats: see 'sparsecc strategies' (default: roofline)",
    )
    parser.add_argument(
        "--calls",
        type=some_calls,
        metavar="N",
        help="over how many calls conversions are spread (default of run: as often as it runs; else they do not count)",
    )
    parser.add_argument(
        "--size",
        action="append",
        default=[],
        metavar="INDEX=NUMBER",
        help="choose for this extent of an index, where no operand says it",
    )
    parser.add_argument("--plan", metavar="FILE.json", help="use a plan that was saved")
    parser.add_argument("--save-plan", metavar="FILE.json", help="save the plan, for --plan")


def _output(parser: Parser) -> None:
    parser.add_argument("-o", dest="output", metavar="FILE", help="write the result to a file")


def _json(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _run(parser: Parser) -> None:
    _program(parser)
    _output(parser)
    _json(parser)
    parser.add_argument(
        "--time",
        type=count,
        default=0,
        metavar="N",
        help="run N times more and say how long it takes",
    )
    parser.add_argument("--explain", action="store_true", help="say what was chosen and why")
    parser.add_argument(
        "--print-source", action="store_true", help="show the kernel's text: C, or Triton"
    )
    parser.add_argument(
        "--interpret", action="store_true", help="run a GPU's kernel on this processor"
    )
    parser.add_argument(
        "--autotune", action="store_true", help="measure a GPU kernel's schedules first"
    )
    parser.add_argument(
        "--extent",
        action="append",
        default=[],
        metavar="INDEX=NUMBER",
        help="insist on the extent of an index",
    )


def _compile(parser: Parser) -> None:
    _program(parser)
    _output(parser)
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=ROWSxCOLUMNS",
        help="the extents of an operand; '?' for one that is known at run time",
    )
    parser.add_argument(
        "--emit",
        choices=EMIT_ALL + EMIT_CPU + EMIT_GPU,
        metavar="STAGE",
        help=f"{', '.join(EMIT_ALL + EMIT_CPU)} (default: c); for GPUs tensor, selected, iteration, "
        f"{', '.join(EMIT_GPU)} (default: triton)",
    )
    _gpu(parser)


def _gpu(parser: Parser) -> None:
    parser.add_argument(
        "--tokens",
        type=positive,
        metavar="N",
        help="on GPUs: how many tokens a contraction is made for",
    )
    parser.add_argument(
        "--schedule", metavar="SCHEDULE", help="on GPUs: another schedule, as 'explain' prints it"
    )


def _explain(parser: Parser) -> None:
    _program(parser)
    _gpu(parser)
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=ROWSxCOLUMNS",
        help="the extents of an operand; '?' for one that is known at run time",
    )
    parser.add_argument(
        "--plans", type=positive, default=8, metavar="N", help="show so many plans (default: 8)"
    )
    parser.add_argument(
        "--steps", action="store_true", help="compile the plan too, and show its steps and kernels"
    )
    parser.add_argument("--html", metavar="FILE.html", help="write a page with plots there")
    _json(parser)


def _opt(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE.mlir|-", help="MLIR text; - reads stdin")
    parser.add_argument(
        "-p",
        "--passes",
        dest="pipeline",
        default="",
        metavar="PIPELINE",
        help="passes to run: 'first{option=value},second' (default: none)",
    )
    parser.add_argument(
        "--print-after-all", action="store_true", help="print the program after each pass"
    )
    parser.add_argument("--verify-each", action="store_true", help="verify it after each pass")
    _output(parser)


def _convert(parser: Parser) -> None:
    parser.add_argument("input", metavar="IN")
    parser.add_argument("output", metavar="OUT")
    parser.add_argument("--format", help="the format to store it in")
    parser.add_argument("--key", help="which array of a file that holds several")


def _inspect(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE[:FORMAT]")
    parser.add_argument("--target", help="predict what each format of a matrix would gain there")
    parser.add_argument("--key", help="which array of a file that holds several")
    _json(parser)


def _calibrate(parser: Parser) -> None:
    parser.add_argument("--target", default="cpu", help="cpu, or that of the GPU that is present")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="where to write the calibration (default: in the cache, where it is found)",
    )
    parser.add_argument(
        "--seconds", type=float, default=60, help="end in so much time (default: 60)"
    )


COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        Command("run", "Compile a program and run it on files.", _run, "sparsecc.cli.programs:run"),
        Command(
            "compile",
            "Compile a program and print a stage of it.",
            _compile,
            "sparsecc.cli.programs:compile",
        ),
        Command(
            "explain",
            "Say which formats and which code a program gets, and why.",
            _explain,
            "sparsecc.cli.explain:explain",
        ),
        Command("opt", "Run passes on MLIR text.", _opt, "sparsecc.cli.tools:opt"),
        Command(
            "convert",
            "Convert a file to another kind of file, or another format.",
            _convert,
            "sparsecc.cli.tools:convert",
        ),
        Command(
            "inspect",
            "Say what is in a file: pattern, density, bytes in each format, predicted gains.",
            _inspect,
            "sparsecc.cli.tools:inspect",
        ),
        Command(
            "bench",
            "Measure kernels on this GPU beside cuBLAS, cuSPARSELt, cuSPARSE and torch.",
            bench,
            "sparsecc.cli.bench:bench",
        ),
        Group(
            "research",
            "Compare strategies of format selection on recorded or measured times.",
            lambda parser: None,
            "sparsecc.cli.research_options:COMMANDS",
        ),
        Command(
            "calibrate",
            "Measure this machine's rates, from which the times of plans are predicted.",
            _calibrate,
            "sparsecc.cli.calibrate:calibrate",
        ),
        Command(
            "formats", "List the formats and level types.", _json, "sparsecc.cli.tables:formats"
        ),
        Command("targets", "List the targets.", _json, "sparsecc.cli.tables:targets"),
        Command("passes", "List the passes.", _json, "sparsecc.cli.tables:passes"),
        Command(
            "strategies",
            "List the strategies of format selection.",
            _json,
            "sparsecc.cli.tables:strategies",
        ),
    )
}


def find_command(name: str) -> Command:
    """The command of a name. Raises UsageError."""
    if name not in COMMANDS:
        raise UsageError(
            f"there is no command {name!r}",
            place="sparsecc",
            help=did_you_mean(name, list(COMMANDS)),
        )
    return COMMANDS[name]


def overview() -> str:
    """The help text of the whole command line."""
    lines = ["usage: sparsecc COMMAND …", "", "A compiler for sparse tensor programs.", ""]
    lines += [f"  {command.name:11}{command.summary}" for command in COMMANDS.values()]
    return "\n".join([*lines, "", "'sparsecc COMMAND --help' tells the options of a command."])
