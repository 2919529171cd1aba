"""Runs, comparisons and tables as tables of text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from sparsecc.research.compare import Comparison, Paired
from sparsecc.research.corpus import CorpusProblem
from sparsecc.research.metrics import Against, Part, Summary
from sparsecc.research.outcomes import label
from sparsecc.research.table import Table
from sparsecc.research.transfer import Transfer
from sparsecc.selection.candidate import Candidate

SHOWN = 12
"""Rows of static choices, and of failures."""


@dataclass(frozen=True)
class Grid:
    """A table of text with its title."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def markdown(self) -> str:
        """The table in Markdown."""
        lines = ["| " + " | ".join(self.heads) + " |", "|---" * len(self.heads) + "|"]
        # Words of other people's errors are among the cells.
        plain = ([" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in self.rows)
        lines += ["| " + " | ".join(row) + " |" for row in plain]
        return "\n".join(lines) + "\n"


def percent(share: float | None) -> str:
    return "-" if share is None else f"{share * 100:.1f} %"


def times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}x"


def duration(seconds: float | None) -> str:
    """Seconds in a unit that fits."""
    if seconds is None:
        return "-"
    for unit, name in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 1e-9:.3g} ns"


HEADS = (
    "strategy", "problems", "failed", "regret", "ties as 0", "median", "worst", "within 5 %", "best or tied",
    "to oracle", "to best static", "to dense", "to library", "choosing",
)  # fmt: skip


def overview(found: Sequence[Summary]) -> Grid:
    """A line a strategy."""
    rows = tuple(
        (
            s.strategy, str(s.all.problems), str(s.all.failed), percent(s.all.regret), percent(s.noise_aware),
            percent(s.median), percent(s.all.worst), percent(s.all.near), percent(s.all.tied),
            times(None if s.all.slowdown is None else 1 / s.all.slowdown), _speedup(s.best_static, s),
            _speedup(s.dense, s), _speedup(s.vendor, s), duration(s.selection_mean),
        )
        for s in found
    )  # fmt: skip
    return Grid(f"table {found[0].table}, {found[0].split} problems", HEADS, rows)


def _speedup(against: Against, of: Summary) -> str:
    """With the number of problems, where that is not all."""
    few = "" if against.problems == of.all.problems else f" ({against.problems})"
    return times(against.speedup) + few


def plan_label(plan: Candidate | None) -> str:
    return "-" if plan is None else label(plan)


def details(s: Summary, shown: int = SHOWN) -> list[Grid]:
    """All else that is known of one strategy's run. ``shown``: rows of static choices."""
    found = [
        Grid("regret of the best of the first k plans", tuple(f"k = {k}" for k in s.regret_at),
             (tuple(percent(r) for r in s.regret_at.values()),)),
        Grid("conversions spread over calls, which the strategy is told",
             ("calls", "problems", "failed", "regret", "worst"),
             tuple((f"{n:g}", str(count), str(failed), percent(mean), percent(worst))
                   for n, (mean, worst, count, failed) in s.amortised.items())),
        Grid("by operation", PART, tuple(map(_part, s.operations))),
        Grid("by family", PART, tuple(map(_part, s.families))),
        Grid("against one plan for all", ("plan", "speed-up", "problems"),
             tuple((a.what, times(a.speedup), str(a.problems)) for a in s.statics[:shown])),
    ]  # fmt: skip
    if s.errors:
        rows = tuple((e.plan, str(e.count), times(e.bias), percent(e.error)) for e in s.errors)
        heads = ("plan", "plans", "predicted / measured", "typical error")
        found.append(Grid("predictions", heads, rows))
    found += undecided(s)
    if s.unmeasured:
        rows = tuple((plan, str(n)) for plan, n in s.unmeasured.items())
        found.append(Grid("legal plans that the table has no time of", ("plan", "problems"), rows))
    return [grid for grid in found if grid.rows and grid.heads]


def undecided(s: Summary) -> list[Grid]:
    """Why some problems have no regret; nothing if all have."""
    if not s.failures:
        return []
    rows = [(text, str(n)) for text, n in list(s.failures.items())[:SHOWN]]
    if len(s.failures) > SHOWN:
        left = list(s.failures.values())[SHOWN:]
        rows.append((f"... and {len(left)} more reasons", str(sum(left))))
    return [Grid(f"not decided by {s.strategy}", ("why", "problems"), tuple(rows))]


PART = ("", "problems", "failed", "regret", "worst", "within 5 %", "best or tied", "worst problem")


def _part(part: Part) -> tuple[str, ...]:
    return (
        part.name, str(part.problems), str(part.failed), percent(part.regret), percent(part.worst),
        percent(part.near), percent(part.tied), part.worst_problem,
    )  # fmt: skip


def comparison(c: Comparison) -> list[Grid]:
    """Two runs, problem by problem."""
    heads = ("", "problems", "wins", "ties", "losses", "speed-up", "95 % of means", "regret less")
    rows = tuple(map(_paired, (c.all, *c.operations, *c.families)))
    return [Grid(f"{c.one} against {c.other}", heads, rows)]


def _paired(p: Paired) -> tuple[str, ...]:
    return (
        p.name, str(p.problems), str(p.wins), str(p.ties), str(p.losses), times(p.speedup),
        f"{p.low:.2f} .. {p.high:.2f}", f"{p.regret * 100:+.1f} %",
    )  # fmt: skip


def transfers(strategy: str, found: Sequence[Transfer]) -> Grid:
    """The cross-target matrix: a line a table, a column a believed target."""
    believed = tuple(dict.fromkeys(t.believed for t in found))
    rows: list[tuple[str, ...]] = []
    for name in dict.fromkeys(t.table for t in found):
        cells = {t.believed: t for t in found if t.table == name}
        rows.append((name, *(_cell(cells[b]) for b in believed)))
    return Grid(
        f"{strategy}: mean regret (worst) with the rates of", ("table", *believed), tuple(rows)
    )


def _cell(t: Transfer) -> str:
    few = f", {t.failed} failed" if t.failed else ""
    return f"{percent(t.regret)} ({percent(t.worst)}{few})"


def of_corpus(name: str, problems: Sequence[CorpusProblem]) -> Grid:
    """How many problems a corpus has of each kind."""
    operations = tuple(dict.fromkeys(p.operation for p in problems))
    rows: list[tuple[str, ...]] = []
    for family in (*dict.fromkeys(p.family for p in problems), ""):
        own = [p for p in problems if family in ("", p.family)]
        counts = Counter(p.operation for p in own)
        rows.append(
            (family or "all", *(str(counts[o]) for o in operations), str(len(set(map(_pattern, own)))),
             str(sum(p.held_out for p in own)))
        )  # fmt: skip
    heads = ("family", *operations, "matrices", "held out")
    return Grid(f"corpus {name}: {len(problems)} problems", heads, tuple(rows))


def _pattern(problem: CorpusProblem) -> str:
    """What the split is by: a matrix of two types is one."""
    return json.dumps(dict(problem.pattern), sort_keys=True)


def of_problems(problems: Sequence[CorpusProblem]) -> Grid:
    """A line a problem."""
    rows = tuple(
        (p.id, "x".join(map(str, p.sparse.shape)), p.sparse.dtype, p.sparse.stored or "",
         "held out" if p.held_out else "fit", p.expression)
        for p in problems
    )  # fmt: skip
    return Grid("", ("problem", "shape", "dtype", "stored", "split", "expression"), rows)


def of_table(table: Table) -> list[Grid]:
    """What a table holds: how often each plan ran, failed, and was the best."""
    ran: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    best: Counter[str] = Counter()
    for id in table.problems:
        for time in table.times.get(id, ()):
            (lost if time.failure else ran)[label(time.candidate)] += 1
        best.update(label(time.candidate) for time in table.runs(id)[:1])
    plans = [name for name, _ in (ran + lost).most_common()]
    rows = tuple((name, str(ran[name]), str(best[name]), str(lost[name])) for name in plans)
    cells = sum(prod(n or 0 for n in p.sparse.shape) > 0 for p in table.problems.values())
    title = f"table {table.name}: {cells} problems, {sum(ran.values())} times"
    return [
        of_corpus(table.name, list(table.problems.values())),
        Grid(title, ("plan", "ran", "was best", "failed"), rows),
    ]
