"""An explanation as a page for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sparsecc.explanation.report import PlanRow, Report
from sparsecc.explanation.sizes import ranges
from sparsecc.explanation.units import count, seconds, share, size, times
from sparsecc.selection.candidate import GENERATED, TERMS, Candidate, Refusal
from sparsecc.selection.engines import ENGINES
from sparsecc.selection.problem import Tensor
from sparsecc.statistics import Statistics

NEAR = 1.25
"""A library that is behind by less nearly wins."""
EQUAL = 5e-4
"""Parts that are smaller are none to a reader."""
FULL = 0.9
"""The band of what is fuller than this says nothing."""
SYMMETRY = {"": "symmetry unknown", "none": "not symmetric", "pattern": "symmetric in its pattern"}


def page(report: Report, plans: int = 8) -> str:
    """The whole explanation, with so many of the plans."""
    sections = [
        _head(report),
        _operands(report),
        _sizes(report),
        _plans(report, plans),
        verdict(report),
        _losers(report, plans),
        _refusals(report),
        _offers(report),
        [f"note: {note}" for note in report.notes],
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines)


def _head(report: Report) -> list[str]:
    problem = report.problem
    calls = (
        "conversions of operands are not counted"
        if problem.calls is None
        else f"conversions are spread over {count(problem.calls)} calls"
    )
    lines = [e.text.strip() for e in problem.expressions]
    lines.append(f"target {problem.target.name} ({problem.target.title}); rates: {rates(report)}")
    took = f"{report.milliseconds:.1f} ms" if report.milliseconds >= 0.05 else "no time"
    lines.append(f"strategy {report.strategy}, {took}; {calls}")
    return lines


def rates(report: Report) -> str:
    """Whose rates the predictions are made with."""
    known = report.calibration
    return f"{known.machine}, {known.date}" if known.date else known.machine


# -- operands --------------------------------------------------------------------------------------


def _operands(report: Report) -> list[str]:
    lines = ["operands"]
    extents = report.problem.extents
    accesses = {a.name: a for e in report.problem.expressions for a in e.inputs}
    for tensor in report.operands:
        indices = accesses[tensor.name].indices
        known = zip(indices, tensor.shape, strict=True)
        shape = [extents.get(index) if extent is None else extent for index, extent in known]
        lines += [f"  {line}" for line in operand_lines(tensor, shape)]
    return lines


def operand_lines(tensor: Tensor, shape: Sequence[int | None]) -> list[str]:
    """An operand and its statistics in a few lines."""
    spelled = " x ".join("?" if n is None else str(n) for n in shape) or "scalar"
    if tensor.format is not None:
        return [f"{tensor.name}  {spelled} {tensor.dtype}, {tensor.format}"]
    stored = f", stored as {tensor.stored}" if tensor.stored else ""
    lines = [f"{tensor.name}  {spelled} {tensor.dtype}, open{stored}"]
    if tensor.statistics is not None:
        lines += [f"   {line}" for line in pattern_lines(tensor.statistics)]
    return lines


def pattern_lines(s: Statistics) -> list[str]:
    """A pattern in a few lines."""
    lines = [f"{count(s.nnz)} entries, {share(s.density)} full"]
    if s.slices and len(s.shape) == 2:
        rows = s.slices[0]
        lines[0] += f"; {rows.smallest} to {rows.largest} a row, {rows.mean:.4g} on average"
    groups = [f"{share(g.fitting)} of groups fit {g.n}:{g.m}" for g in s.groups]
    fills = {(b.rows, b.columns): b.fill for b in s.blocks}
    shown = [(r, c) for r, c in ((4, 4), (16, 16), (64, 64)) if (r, c) in fills]
    blocks = [f"{share(fills[shape])} in blocks of {shape[0]}x{shape[1]}" for shape in shown]
    if groups:
        lines.append(", ".join(groups))
    if blocks:
        lines.append("cells full: " + ", ".join(blocks))
    if len(s.shape) == 2 and s.shape[0] == s.shape[1] and s.density < FULL:
        kind = SYMMETRY.get(s.symmetry, s.symmetry)
        lines.append(f"{kind}; band {s.below} below, {s.above} above the diagonal")
    if not s.exact:
        lines.append("blocks and groups are estimated from a sample")
    return lines


# -- sizes -----------------------------------------------------------------------------------------


def _sizes(report: Report) -> list[str]:
    if report.index is None or not report.sizes:
        return []
    heads, rows = size_table(report)
    lines = [f"no operand says {report.index}; what wins for a few"]
    lines += [f"  {line}" for line in columns(heads, rows, left=(1,))]
    parts = ranges(report.sizes)
    if len(parts) > 1:
        spelled = ", ".join(f"{plan_name(plan)} {_range(a, b)}" for a, b, plan in parts)
        lines.append(f"  by {report.index}: {spelled}")
    given = report.problem.extents.get(report.index)
    lines = [f"no operand says {report.index}; what wins for a few"]
    lines += [f"  {line}" for line in columns(heads, rows, left=(1,))]
    parts = ranges(report.sizes)
    if len(parts) > 1:
        spelled = ", ".join(f"{plan_name(plan)} {_range(a, b)}" for a, b, plan in parts)
        lines.append(f"  by {report.index}: {spelled}")
    if given is not None:
        lines.append(f"what follows is for {report.index} = {given}")
    return lines


def size_table(report: Report) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Heads and rows of what wins by size."""
    heads = (report.index or "", "winner", "predicted", "dense", "dense / winner")
    rows: list[tuple[str, ...]] = []
    for row in report.sizes:
        dense = "-" if row.dense is None else seconds(row.dense.seconds)
        gain = "-" if row.gain is None else times(row.gain)
        name, taken = plan_name(row.best.candidate), seconds(row.best.seconds)
        rows.append((str(row.extent), name, taken, dense, gain))
    return heads, rows


def _range(first: int, last: int) -> str:
    return f"at {first}" if first == last else f"from {first} to {last}"


# -- plans -----------------------------------------------------------------------------------------


def plan_name(candidate: Candidate) -> str:
    """``W=dense by cuBLAS``; of generated kernels no engine is named."""
    formats = " ".join(f"{name}={fmt}" for name, fmt in candidate.formats)
    engines = [ENGINES[e].title if e in ENGINES else e for e in dict.fromkeys(candidate.engines)]
    if set(candidate.engines) == {GENERATED}:
        return formats or GENERATED
    return f"{formats} by {', '.join(engines)}".strip()


def _plans(report: Report, shown: int) -> list[str]:
    rows = report.plans[: max(shown, 1)]
    heads, table = plan_table(report, rows)
    more = len(report.plans) - len(rows)
    title = f"plans (predicted; a call = {_sum(report)})"
    lines = [title, *(f"  {line}" for line in columns(heads, table, left=(0,)))]
    if more:
        lines.append(f"  … and {more} more, behind these")
    return lines


def plan_table(report: Report, plans: Sequence[PlanRow]) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of plans with their terms; and what was measured, or what a strategy predicts for itself."""
    measured = any(row.measured is not None for row in report.plans)
    own = not measured and any(row.seconds != row.prediction.seconds for row in report.plans)
    more = ["measured"] if measured else [f"by {report.strategy}"] if own else []
    rows: list[list[str]] = []
    for row in plans:
        terms = [seconds(row.prediction.terms.get(term, 0.0)) for term in TERMS]
        memory = row.prediction.memory
        said = row.measured if measured else row.seconds
        rows.append(
            [plan_name(row.candidate), *terms, seconds(row.prediction.seconds)]
            + (["-" if said is None else seconds(said)] if more else [])
            + ["-" if memory is None else size(memory)]
        )
    return ["plan", *TERMS, "a call", *more, "memory"], rows


def _sum(report: Report) -> str:
    largest = "bytes, macs and issue side by side"
    if len(report.problem.expressions) > 1:
        largest += " of each expression"
    return f"{largest}, + launch + conversion"


def verdict(report: Report) -> list[str]:
    """The winner, what bounds it, and by how much it wins."""
    winner, second = report.winner, report.runner_up
    lines = [f"winner: {plan_name(winner.candidate)}, {seconds(winner.seconds)} a call"]
    part = winner.prediction.largest(winner.prediction.bound)
    if part is not None:
        amount = size(part.amount) if part.bytes else count(part.amount)
        what = part.words.removeprefix("bytes ") if part.bytes else part.words
        lines.append(f"  bound by {winner.prediction.bound}: {amount} {what}")
    if winner.note:
        lines.append(f"  the strategy says: {winner.note}")
    if second is not None and report.margin is not None:
        lines.append(f"  {_margin(report, second)}")
    lines += [f"  {line}" for line in _library(report)]
    return lines


def _losers(report: Report, shown: int) -> list[str]:
    losers, fastest = report.plans[1 : max(shown, 1)], report.winner.seconds
    rows = [
        (plan_name(row.candidate), times(row.seconds / fastest) if fastest else "-", row.reason)
        for row in losers
    ]
    found = columns(("plan", "time", ""), rows, left=(0, 2))[1:] if rows else []
    return ["why the others lost", *(f"  {line}" for line in found)] if rows else []


def _margin(report: Report, second: PlanRow) -> str:
    assert report.margin is not None
    name = plan_name(second.candidate)
    if abs(report.margin) < EQUAL:
        return f"margin: none, {name} is as fast"
    if report.margin < 0:
        return f"margin: none, {name} is predicted {times(1 / (1 + report.margin))} as fast"
    text = f"margin: {share(report.margin)} before {name}"
    if report.margin >= 1:
        text = f"margin: {name}, the next, takes {times(1 + report.margin)} as long"
    known = report.uncertainty
    if known is not None and report.margin < known:
        text += f", less than the model's median error of {share(known)}: measure with --strategy autotune"
    return text


def _library(report: Report) -> Iterator[str]:
    """How far libraries and generated kernels are apart."""
    rival, winner = report.rival, report.winner
    if rival is None or not winner.seconds:
        return
    ratio = rival.seconds / winner.seconds
    name = plan_name(rival.candidate)
    if abs(ratio - 1) < EQUAL:
        yield f"the best {'generated' if winner.by_library else 'library'} plan, {name}, is as fast"
    elif winner.by_library and ratio >= 1:
        engine = next(e for e in winner.candidate.engines if e != GENERATED)
        yield f"{ENGINES[engine].title} is {times(ratio)} as fast as the best generated plan, {name}"
    elif ratio < 1:
        kind = "generated" if winner.by_library else "library"
        yield f"the best {kind} plan, {name}, is predicted {times(1 / ratio)} as fast"
    elif ratio < NEAR:
        yield f"the best library plan, {name}, is nearly as fast: {share(ratio - 1)} slower"
    else:
        yield f"{times(ratio)} as fast as the best library plan, {name}"


# -- what is not, and what would be ----------------------------------------------------------------


def _refusals(report: Report) -> list[str]:
    lines: list[str] = []
    for what, reason, remedy in grouped_refusals(report.refusals):
        lines.append(f"  {what}: {reason}" + (f"; {remedy}" if remedy else ""))
    return ["not legal", *lines] if lines else []


def grouped_refusals(refusals: Sequence[Refusal]) -> list[tuple[str, str, str]]:
    """What is refused for the same reason together: names, reason, remedy."""
    found: dict[tuple[str, str], list[str]] = {}
    for refusal in refusals:
        found.setdefault((refusal.reason, refusal.remedy), []).append(refusal.what)
    return [(", ".join(names), *why) for why, names in found.items()]


def _offers(report: Report) -> list[str]:
    lines = [
        f"  {offer.change}: {seconds(offer.seconds)} predicted instead of {seconds(offer.before)} "
        f"({times(offer.gain)}), as {plan_name(offer.candidate)}"
        for offer in report.offers
    ]
    return ["what would pay", *lines] if lines else ["what would pay: nothing that the model knows"]


def columns(
    heads: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = ()
) -> list[str]:
    """Lines of a table; columns that are not ``left`` are aligned to the right."""
    widths = [max(len(row[k]) for row in [heads, *rows]) for k in range(len(heads))]
    return [
        "  ".join(
            cell.ljust(width) if k in left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [heads, *rows]
    ]
