"""The commands of ``sparsecc research`` and their options."""

from __future__ import annotations

from sparsecc.cli.commands import Command, Parser

TARGET = "cpu"
RESULTS_PAGE = "docs/benchmarks/selection.md"


def _data(parser: Parser) -> None:
    parser.add_argument(
        "--corpus",
        default="builtin",
        metavar="builtin|TABLE|FOLDER",
        help="the table that ships for the target, a table by its name or path, or (with --measure) a "
        "folder of .mtx .smtx .tns files (default: builtin)",
    )
    parser.add_argument("--target", default=TARGET, help="cpu or sm_90 (default: cpu)")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="problems whose names hold one of these texts",
    )
    parser.add_argument(
        "--measure",
        action="store_true",
        help="measure all plans here, of a built-in corpus (builtin, cpu, gpu) or of a folder",
    )
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="end measuring after so many"
    )
    parser.add_argument(
        "--dtype",
        dest="dtypes",
        action="append",
        default=[],
        help="the type of the files' tensors (default: f32, on GPUs f16)",
    )
    split = parser.add_mutually_exclusive_group()
    split.add_argument(
        "--held-out",
        dest="split",
        action="store_const",
        const="held-out",
        help="the problems that fit nothing (the default, but for folders)",
    )
    split.add_argument(
        "--all", dest="split", action="store_const", const="all", help="all problems"
    )
    split.add_argument(
        "--fit", dest="split", action="store_const", const="fit", help="the others: for training"
    )
    parser.set_defaults(split=None)


def _show(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--markdown", action="store_true", help="print Markdown, as for a page")


def _strategies(parser: Parser) -> None:
    parser.add_argument(
        "--strategy",
        dest="strategies",
        action="append",
        default=[],
        metavar="NAME|PKG:CLASS",
        help="see 'sparsecc strategies'; several make one table (default: roofline)",
    )


def _run(parser: Parser) -> None:
    _strategies(parser)
    _data(parser)
    parser.add_argument(
        "-o",
        dest="output",
        metavar="FILE.csv|FILE.parquet",
        help="write a line a problem (of one strategy)",
    )
    _show(parser)


def _compare(parser: Parser) -> None:
    parser.add_argument(
        "one", metavar="A", help="a strategy, or a file that 'research run -o' wrote"
    )
    parser.add_argument("other", metavar="B")
    _data(parser)
    _show(parser)


def _transfer(parser: Parser) -> None:
    _strategies(parser)
    parser.add_argument(
        "--table",
        dest="tables",
        action="append",
        default=[],
        metavar="TABLE",
        help="tables that judge (default: all that ship)",
    )
    parser.add_argument(
        "--believed",
        action="append",
        default=[],
        metavar="TARGET",
        help="targets whose plans and rates the strategy is given (default: those of the tables)",
    )
    parser.add_argument(
        "--all", dest="split", action="store_const", const="all", help="all problems"
    )
    parser.set_defaults(split="held-out")
    _show(parser)


def _results(parser: Parser) -> None:
    parser.add_argument(
        "--docs",
        nargs="?",
        const=RESULTS_PAGE,
        metavar="PAGE",
        help=f"write them into a page, between its markers (default: {RESULTS_PAGE})",
    )


def _record(parser: Parser) -> None:
    from sparsecc.research.record import add_arguments

    add_arguments(parser)


def _corpus(parser: Parser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="list the problems of this corpus")
    _show(parser)


def _table(parser: Parser) -> None:
    parser.add_argument(
        "name", nargs="?", metavar="TABLE", help="a name of those that ship, or a path"
    )
    parser.add_argument(
        "-o", dest="output", metavar="FILE.csv|FILE.parquet", help="write a line a measured plan"
    )
    _show(parser)


ACTIONS = "sparsecc.cli.research"

COMMANDS: dict[str, Command] = {
    "run": Command(
        "research run",
        "Let strategies choose for the problems of a table, and say what their choices cost.",
        _run,
        f"{ACTIONS}:run",
    ),
    "compare": Command(
        "research compare",
        "Two strategies, or two files of results, problem by problem.",
        _compare,
        f"{ACTIONS}:compare",
    ),
    "transfer": Command(
        "research transfer",
        "What the rates of one target are worth on another: the cross-target matrix.",
        _transfer,
        f"{ACTIONS}:transfer",
    ),
    "results": Command(
        "research results",
        "What the strategies that ship are worth on the tables that ship, as Markdown.",
        _results,
        f"{ACTIONS}:results",
    ),
    "record": Command(
        "research record",
        "Measure all plans of all problems of a corpus, and write a table.",
        _record,
        f"{ACTIONS}:record",
    ),
    "corpus": Command(
        "research corpus", "List the corpora, or the problems of one.", _corpus, f"{ACTIONS}:corpus"
    ),
    "table": Command(
        "research table",
        "List the tables that ship, or say what is in one.",
        _table,
        f"{ACTIONS}:table",
    ),
}
