"""The page of results: what the strategies that ship are worth on the tables that ship, losses included."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparsecc.bench.report import fill_page
from sparsecc.research import harness, metrics, observations, report, transfer
from sparsecc.research.harness import Run
from sparsecc.research.report import Grid
from sparsecc.research.sources import BUILTIN, shipped, table_for
from sparsecc.research.table import Table
from sparsecc.selection import registry
from sparsecc.selection.calibrations import calibration_of
from sparsecc.targets import known_target

STRATEGIES = (registry.DEFAULT, "tree", "bytes", "fixed", "always-dense")
WORST = 10
"""Problems where the default loses most."""


def write_page(page: Path) -> None:
    """Write the results between the page's markers. Raises FileError for a page without markers."""
    fill_page(page, markdown())


def markdown() -> str:
    """The results on the held-out problems of all targets that a table ships for."""
    targets = list(shipped())
    parts = [part for target in targets for part in _of_target(table_for(BUILTIN, target))]
    command = f"sparsecc research transfer --strategy {registry.DEFAULT} --markdown"
    parts += ["## Across targets", f"`{command}`", "A line a table, a column the target whose plans and rates the "
              "strategy believes in. On the diagonal it is at home."]  # fmt: skip
    tables = [table_for(BUILTIN, target) for target in targets]
    cells = transfer.matrix(registry.strategy(registry.DEFAULT), tables, targets, registry.space_of)
    parts.append(_shown(report.transfers(registry.DEFAULT, cells)))
    return "\n\n".join(parts) + "\n"


def command_of(target: str) -> str:
    """The command that prints the first table of a target."""
    named = " ".join(f"--strategy {name}" for name in STRATEGIES)
    return f"sparsecc research run {named} --target {target} --held-out --markdown"


def _of_target(table: Table) -> list[str]:
    target = known_target(table.target)
    space = registry.space_of(target)
    runs: list[Run] = []
    for name in STRATEGIES:
        calls = harness.CALLS if name == registry.DEFAULT else ()
        runs.append(harness.run(registry.strategy(name), table, space, calls=calls))
    summaries = [metrics.summary(run, table) for run in runs]
    own = summaries[0]
    grids = [report.overview(summaries)]
    grids += [grid for s in summaries for grid in report.undecided(s)]
    parts = [f"## {heading(table.target)}", facts_of(table), f"`{command_of(table.target)}`", *map(_shown, grids),
             f"### {own.strategy} on {table.target}",
             f"`sparsecc research run --target {table.target} --markdown`"]  # fmt: skip
    # Nothing is cut off here: each static choice counts.
    details = report.details(replace(own, failures={}, errors=()), shown=len(own.statics))
    parts += [_shown(grid) for grid in (*details, worst_of(runs[0]), errors_of(table))]
    return parts


def heading(target: str) -> str:
    known = known_target(target)
    return "CPU" if known.backend == "cpu" else known.title


def facts_of(table: Table) -> str:
    """Where the table and the rates are from, as a list."""
    rates = calibration_of(table.target)
    found: Mapping[str, Any] = table.meta
    lines = [f"* {name}: {_text(found.get(name, '-'))}"
             for name in ("machine", "versions", "date", "commit")]  # fmt: skip
    lines.append(f"* recorded by: `{found.get('command', '-')}`")
    lines.append(f"* rates: {rates.machine}, {rates.date}")
    return "\n".join(lines)


def _text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text.strip("{}").replace('"', "")


def worst_of(run: Run) -> Grid:
    """The problems where the choice loses most. A tie: the ranges of the runs of both plans overlap."""
    lost = [o for o in run.decided if o.regret > 0]
    found = sorted(lost, key=lambda o: -o.regret)[:WORST]
    rows = tuple(
        (o.problem, report.plan_label(o.plan), report.plan_label(o.best), report.percent(o.regret),
         "tie" if o.tied else "")
        for o in found
    )  # fmt: skip
    return Grid("where it loses most", ("problem", "chosen", "best", "regret", ""), rows)


def errors_of(table: Table) -> Grid:
    """Predicted against measured times of the held-out problems, by kernel family; conversions too."""
    rates = calibration_of(table.target)
    seen = [
        *observations.observations(table, rates),
        *observations.conversions(table),
    ]
    families = observations.by_family(o for o in seen if o.held_out)
    rows: list[tuple[str, ...]] = []
    for name, group in sorted(families.items()):
        error = observations.errors(group, rates)
        ratios = [observations.predicted(o, rates) / o.seconds for o in group]
        bias = metrics.geomean(ratio for ratio in ratios if ratio > 0)
        rows.append((name, str(error.count), report.times(bias), report.percent(error.median),
                     report.percent(error.p90)))  # fmt: skip
    heads = ("kernel family", "plans", "predicted / measured", "median error", "90 % are within")
    return Grid("predictions by kernel family", heads, tuple(rows))


def _shown(grid: Grid) -> str:
    title = f"**{grid.title}**\n\n" if grid.title else ""
    return title + grid.markdown().rstrip()


def numbers(text: str) -> Sequence[str]:
    """The lines of a page without the column that says how long choosing took here, the only one that is measured
    when the page is made."""
    lines: list[str] = []
    timed = False
    for line in text.splitlines():
        row = line.startswith("|")
        timed = row and (timed or line.endswith("| choosing |"))
        lines.append(line[: line.rindex("|", 0, -1)].rstrip() if timed else line)
    return lines
