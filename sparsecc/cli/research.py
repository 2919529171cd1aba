"""``sparsecc research``: strategies compared on recorded times."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sparsecc.cli.output import note, show_json
from sparsecc.cli.output import table as show_table
from sparsecc.diagnostics import PassError, UsageError
from sparsecc.research import compare as comparing
from sparsecc.research import corpus as corpora
from sparsecc.research import harness, metrics, records, report, sources
from sparsecc.research import table as tables
from sparsecc.research import transfer as transfers
from sparsecc.research.harness import Progress, Run
from sparsecc.research.outcomes import CALLS
from sparsecc.research.report import Grid
from sparsecc.research.table import Table
from sparsecc.selection import registry
from sparsecc.selection.problem import Strategy
from sparsecc.targets import known_target

RESULTS = (".csv", ".parquet")


def run(options: Namespace) -> None:
    """``sparsecc research run``."""
    names = options.strategies or [registry.DEFAULT]
    if options.output and len(names) > 1:
        raise UsageError("-o holds the results of one strategy", help="run them one by one")
    if options.output and not options.output.endswith(RESULTS):
        raise records.UnknownRecords(path=options.output)
    found = [strategy_of(name) for name in names]
    table, split = table_of(options)
    runs = [run_of(strategy, table, split) for strategy in found]
    if options.output:
        harness.write_results(runs[0], Path(options.output))
        note(f"wrote {options.output}")
    summaries = [metrics.summary(r, table) for r in runs]
    if options.json:
        about = {"table": table.name, "split": split, "meta": dict(table.meta)}
        show_json(about | {"strategies": [s.to_json() for s in summaries]})
        return
    grids = [report.overview(summaries)]
    if len(summaries) == 1:
        grids += report.details(summaries[0])
    else:
        grids += [grid for s in summaries for grid in report.undecided(s)]
    show(grids, options)


def table_of(options: Namespace) -> tuple[Table, str]:
    """The table that judges, recorded or measured here, and the split. Raises what ``sources`` raises."""
    split = options.split or ("all" if sources.is_folder(options.corpus) else "held-out")
    if options.measure:
        return measured(options, split), split
    found = sources.table_for(options.corpus, options.target)
    kept = [id for id in found.problems if _wanted(id, options)]
    return (found if len(kept) == len(found.problems) else found.only(kept)), split


def _wanted(id: str, options: Namespace) -> bool:
    return not options.only or any(text in id for text in options.only)


def measured(options: Namespace, split: str) -> Table:
    """A table that is measured here. Raises NoGpu, OtherTarget, and what reading files raises."""
    from sparsecc.research.measuring import measured_table

    target = known_target(options.target).name
    found = [
        problem for problem in sources.problems_of(options.corpus, target, options.dtypes)
        if split == "all" or problem.held_out == (split == "held-out")
    ]  # fmt: skip
    found = [problem for problem in found if _wanted(problem.id, options)]
    if target == "cpu":
        alone()
    else:
        from sparsecc.bench.machine import find_gpu

        if (present := find_gpu()) != target:
            raise sources.OtherTarget(table="measured here", found=present, wanted=target)
    with progress("measuring") as advance:

        def tell(done: int, total: int, _found: str) -> None:
            if advance is not None:
                advance(done, total)

        made = measured_table(found, target, tell=tell, seconds=options.seconds)
    if len(made.problems) < len(found):
        note(f"{len(made.problems)} of {len(found)} problems were measured")
    return made


def alone() -> None:
    """Start this process again with libraries on one thread: only the calling thread's time is counted."""
    from sparsecc.research.threads import one_thread

    if sys.argv[1:2] == ["research"]:  # not where a program calls main()
        one_thread("sparsecc", sys.argv[1:])


def record(options: Namespace) -> None:
    """``sparsecc research record``."""
    from sparsecc.research import record as recording

    if options.target == "cpu":
        alone()
    recording.record(options)


def strategy_of(name: str) -> Strategy:
    """A strategy by name or ``package.module:Class``. Raises UsageError."""
    try:
        return registry.strategy(name)
    except PassError as error:
        raise UsageError(error.message, place="sparsecc", help=error.help) from None


def run_of(strategy: Strategy, table: Table, split: str, calls: Sequence[float] = CALLS) -> Run:
    """A strategy on a table, with a progress bar."""
    space = registry.space_of(known_target(table.target))
    with progress(strategy.name) as advance:
        return harness.run(strategy, table, space, split=split, calls=calls, progress=advance)


def compare(options: Namespace) -> None:
    """``sparsecc research compare``."""
    runs: list[Run] = []
    recorded: tuple[Table, str] | None = None
    for name in (options.one, options.other):
        if name.endswith(RESULTS):
            runs.append(harness.read_results(Path(name)))
            continue
        strategy = strategy_of(name)
        if recorded is None:
            recorded = table_of(options)
        runs.append(run_of(strategy, *recorded, ()))
    found = comparing.compare(*runs)
    if options.json:
        show_json(found.to_json())
        return
    show(report.comparison(found), options)
    for count, name in ((found.only_one, found.one), (found.only_other, found.other)):
        if count:
            note(f"{count} problems that {name} alone decided are not compared")


def transfer(options: Namespace) -> None:
    """``sparsecc research transfer``."""
    strategies = [strategy_of(name) for name in options.strategies or [registry.DEFAULT]]
    found = [tables.read_table(name) for name in options.tables or tables.names()]
    if not found:
        raise tables.UnknownTable(name="builtin", help="none ships; pass --table")
    believed = options.believed or list(dict.fromkeys(t.target for t in found))
    matrices = [
        transfers.matrix(strategy, found, believed, registry.space_of, options.split)
        for strategy in strategies
    ]
    if options.json:
        show_json(
            {
                strategy.name: [vars(cell) for cell in cells]
                for strategy, cells in zip(strategies, matrices, strict=True)
            }
        )
        return
    show([report.transfers(strategy.name, cells)
          for strategy, cells in zip(strategies, matrices, strict=True)], options)  # fmt: skip


def results(options: Namespace) -> None:
    """``sparsecc research results``."""
    from sparsecc.research import results as page

    if options.docs:
        page.write_page(Path(options.docs))
        note(f"wrote {options.docs}")
    else:
        print(page.markdown(), end="")


def corpus(options: Namespace) -> None:
    """``sparsecc research corpus``."""
    if options.name:
        found = corpora.problems(options.name)
        if options.json:
            show_json([p.to_json() | {"held_out": p.held_out} for p in found])
        else:
            show([report.of_problems(found)], options)
        return
    known = {name: corpora.problems(name) for name in corpora.CORPORA}
    if options.json:
        show_json({name: len(found) for name, found in known.items()})
    else:
        show([report.of_corpus(name, found) for name, found in known.items()], options)


def table(options: Namespace) -> None:
    """``sparsecc research table``."""
    if not options.name:
        shipped = {name: target for target, all in sources.shipped().items() for name in all}
        if options.json:
            show_json(shipped)
        else:
            show([Grid("", ("table", "target"), tuple(shipped.items()))], options)
        return
    found = tables.read_table(options.name)
    if options.output:
        tables.export(found, Path(options.output))
        note(f"wrote {options.output}")
    if options.json:
        show_json({"name": found.name, "meta": dict(found.meta), "problems": len(found.problems)})
        return
    print("\n".join(f"{key}: {value}" for key, value in found.meta.items()) + "\n")
    show(report.of_table(found), options)


def show(grids: Sequence[Grid], options: Namespace) -> None:
    """Print tables, each under its title."""
    for number, grid in enumerate(grids):
        if number:
            print()
        if grid.title:
            print(f"**{grid.title}**\n" if options.markdown else f"{grid.title}\n")
        if options.markdown:
            print(grid.markdown(), end="")
        else:
            show_table(grid.heads, grid.rows)


@contextmanager
def progress(title: str) -> Generator[Progress | None]:
    """A bar on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(title)

        def advance(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        yield advance
