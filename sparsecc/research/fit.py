"""Fitting a calibration to recorded times: ``python -m sparsecc.research.fit TABLE [-o FILE]``.

By kernel family, what a unit of each kind of work costs is found so that the sum over the plans of

    weight * (log(predicted) - log(measured))^2

is least, by Levenberg and Marquardt's method on the logarithms of the costs, which keeps them positive. Plans that are
far from the best one of their problem weigh less: a choice depends on the best few. A weak pull towards the costs
before keeps those in place that the table says nothing of. What all plans of a problem have in common (a busy moment of
the machine, a cache that the model does not see) is taken out of the errors, since it changes no choice. Problems that
are held out are not looked at, they only judge."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from sparsecc.research.observations import (
    Observation,
    by_family,
    conversions,
    errors,
    observations,
    predicted,
)
from sparsecc.research.table import Table, read_table
from sparsecc.selection.calibrations import Calibration, read_calibration
from sparsecc.selection.candidate import Candidate
from sparsecc.selection.costs import work
from sparsecc.selection.costs.families import FAMILIES
from sparsecc.selection.costs.families import SIZES as MACHINES
from sparsecc.targets import known_target

Array = npt.NDArray[np.float64]

PULL = 0.02
"""What it costs to change a unit's cost by a factor of e, in squared relative errors."""
KNOWN = {"cpu": {"call": 1.0}, "triton": {"cold": 1.0, "warm": 0.2, "call": 0.3}}
"""By backend: the same for units whose cost is known better. A call on a CPU takes what its Python takes, memory gives
what it gives."""
MACHINE = ("from_l2", "from_l3", "from_dram", "to_l2", "to_l3", "to_dram")
"""Units that are the machine's and no kernel's: families are fitted once more with their mean costs."""
PLAIN = ("blas-vector", "spmv-rows")
"""Families that read each operand once and in order, so that their times say what streams cost."""
TOGETHER = 0.1
"""How strongly each family is held to them, a plan."""
OUTLIER = 0.3
"""Relative errors beyond which one more counts linearly: a busy machine makes them."""
STEPS = 60
MOMENTS = 3
"""How often the costs are fitted again, once it is known in which moments the machine was fast or slow."""
USUAL = 1.0
"""The weight, in best plans, of the machine being as fast as usual."""
SIZES = {
    "l1": (8e3, 16e3, 24e3, 32e3, 48e3),
    "l2": (0.5e6, 1e6, 2e6),
    "l3": (4e6, 8e6, 16e6, 32e6),
}
"""Sizes of caches that are tried: what one of several machines in one has of them is not what its sheet says."""
TERMS = ("bytes", "macs", "issue", "launch")


def fitted(
    seen: Sequence[Observation],
    before: Mapping[str, float],
    known: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """What a unit of a family's work costs, by measured plans of the family. ``known``: pulls of single units."""
    units = list(before)
    terms = _amounts(seen, units)
    measured: Array = np.log([o.seconds for o in seen])
    weights = np.array([o.weight for o in seen])
    weights *= len(seen) / weights.sum()
    prior: Array = np.log([max(before[u], 1e-18) for u in units])
    theta: Array = prior.copy()
    pulls: Array = np.array([(known or {}).get(unit, PULL) for unit in units])
    damping = 1.0
    residual, jacobian = _residual(terms, theta, measured)

    def objective(residual: Array, theta: Array) -> float:
        size = np.abs(residual)
        robust = np.where(size < OUTLIER, size**2, 2 * OUTLIER * size - OUTLIER**2)
        return float((weights * robust).sum() + (pulls * (theta - prior) ** 2).sum())

    loss = objective(residual, theta)
    for _ in range(STEPS):
        w = weights * np.minimum(1.0, OUTLIER / np.maximum(np.abs(residual), 1e-12))
        hessian = (jacobian * w[:, None]).T @ jacobian + np.diag(pulls)
        gradient = (jacobian * w[:, None]).T @ residual + pulls * (theta - prior)
        trial = theta - _solved(hessian + damping * np.diag(np.diag(hessian)), gradient)
        again, slope = _residual(terms, trial, measured)
        value = objective(again, trial)
        if value < loss:
            done = loss - value < 1e-7 * loss
            theta, residual, jacobian, loss = trial, again, slope, value
            damping = max(damping / 3, 1e-6)
            if done:
                break
        else:
            damping *= 4
            if damping > 1e8:
                break
    return {unit: float(np.exp(t)) for unit, t in zip(units, theta, strict=True)}


def _solved(matrix: Array, right: Array) -> Array:
    """The solution of linear equations, a step of a factor of e^2 at most."""
    solve: Any = cast(Any, np.linalg).solve
    return np.clip(solve(matrix, right), -2.0, 2.0)


def _amounts(seen: Sequence[Observation], units: Sequence[str]) -> Array:
    """Amounts by term, observation and unit."""
    found = np.zeros((len(TERMS), len(seen), len(units)))
    for n, o in enumerate(seen):
        for k, amounts in enumerate((o.work.bytes, o.work.macs, o.work.issue, o.work.launch)):
            for unit, amount in amounts.items():
                if amount:
                    found[k, n, units.index(unit)] = amount
    return found


def _residual(terms: Array, theta: Array, measured: Array) -> tuple[Array, Array]:
    """Errors of the logarithm of the time, and their slopes by the logarithms of the costs."""
    costs = np.exp(theta)
    parts = terms @ costs
    p = work.OVERLAP
    largest = np.maximum(parts[:3].max(axis=0), 1e-15)
    shares = parts[:3] / largest
    together = (shares**p).sum(axis=0) ** (1 / p)
    predicted = np.maximum(largest * together + parts[3], 1e-12)
    # How much of a longer term is seen in the time.
    seen = (shares / np.maximum(together, 1e-9)) ** (p - 1)
    slope = ((terms[:3] * seen[:, :, None]).sum(axis=0) + terms[3]) * costs / predicted[:, None]
    return np.log(predicted) - measured, slope


def fit_units(seen: Sequence[Observation], calibration: Calibration) -> tuple[Calibration, float]:
    """A calibration of the observations that are not held out, and the weighted mean square of its errors."""
    fitting = [o for o in seen if not o.held_out]
    made = _fit_families(fitting, calibration)
    for _ in range(MOMENTS):
        moments = momentary(fitting, made)
        steady = [replace(o, seconds=o.seconds * moments[o.problem]) for o in fitting]
        made = _fit_families(steady, calibration)
    moments = momentary(fitting, made)
    loss = sum(
        o.weight
        * min(abs(float(np.log(predicted(o, made) / (o.seconds * moments[o.problem])))), 1.0) ** 2
        for o in fitting
    )
    return made, loss / max(sum(o.weight for o in fitting), 1e-12)


def momentary(seen: Iterable[Observation], calibration: Calibration) -> dict[str, float]:
    """By problem: how much faster the machine was than usual when its plans were measured, which all of them share;
    the mean of their errors, pulled towards 1."""
    sums: dict[str, tuple[float, float]] = {}
    for o in seen:
        off = float(np.log(predicted(o, calibration) / o.seconds))
        total, weight = sums.get(o.problem, (0.0, 0.0))
        sums[o.problem] = total + o.weight * max(-1.0, min(1.0, off)), weight + o.weight
    return {id: float(np.exp(total / (weight + USUAL))) for id, (total, weight) in sums.items()}


def _fit_families(fitting: Iterable[Observation], calibration: Calibration) -> Calibration:
    families = {k: dict(v) for k, v in calibration.families.items()}
    train = by_family(fitting)
    known = KNOWN.get(known_target(calibration.target).backend)
    for family, group in train.items():
        families[family] = fitted(group, families[family], known)
    for unit, cost in of_the_machine(train, families).items():
        for units in families.values():
            if unit in units:
                units[unit] = cost
    for family, group in train.items():
        tied = dict.fromkeys(MACHINE, TOGETHER * len(group))
        families[family] = fitted(group, families[family], {**(known or {}), **tied})
    return replace(calibration, families=families)


def of_the_machine(
    train: Mapping[str, Sequence[Observation]], families: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
    """What the units of MACHINE cost on the mean of the families, by how much each family's times depend on them."""
    sums: dict[str, tuple[float, float]] = {}
    for family in (f for f in PLAIN if f in train):
        group = train[family]
        units = list(families[family])
        costs: Array = np.log([max(families[family][u], 1e-18) for u in units])
        _, slope = _residual(_amounts(group, units), costs, np.zeros(len(group)))
        weights = np.array([o.weight for o in group])
        for unit, cost, depends in zip(units, costs, weights @ slope**2, strict=True):
            if unit in MACHINE:
                total, weight = sums.get(unit, (0.0, 0.0))
                sums[unit] = total + depends * cost, weight + depends
    return {unit: float(np.exp(t / w)) for unit, (t, w) in sums.items() if w > 0}


def fit(table: Table, calibration: Calibration, hold_out: bool = True) -> Calibration:
    """A calibration fitted to a table, with its errors on the problems that were held out (``hold_out`` False: all are
    fitted, and judged)."""

    def seen(calibration: Calibration) -> list[Observation]:
        found = observations(table, calibration)
        return found if hold_out else [replace(o, held_out=False) for o in found]

    best, least = fit_units(seen(calibration), calibration)
    backend = known_target(calibration.target).backend
    for name, options in SIZES.items() if backend == "cpu" else ():
        for size in options:
            if size == best.sizes.get(name):
                continue
            trial = replace(
                calibration, sizes={**best.sizes, name: size}, families=calibration.families
            )
            made, loss = fit_units(seen(trial), trial)
            if loss < least:
                best, least = made, loss
    best = replace(best, doubts=doubts(seen(best), best))
    moved = conversions(table)
    best = _fit_families((o for o in moved if not (hold_out and o.held_out)), best)
    if not hold_out:
        moved = [replace(o, held_out=False) for o in moved]
    judged = by_family(o for o in (*seen(best), *moved) if o.held_out == hold_out)
    return replace(best, errors={k: errors(v, best) for k, v in sorted(judged.items())})


def doubts(seen: Iterable[Observation], calibration: Calibration) -> dict[str, float]:
    """By family: the weighted mean error on what was fitted, without what all plans of a problem have in common."""
    fitting = [o for o in seen if not o.held_out]
    moments = momentary(fitting, calibration)
    found: dict[str, float] = {}
    for family, group in by_family(fitting).items():
        weights = [o.weight for o in group]
        off = [
            abs(float(np.log(predicted(o, calibration) / (o.seconds * moments[o.problem]))))
            for o in group
        ]
        found[family] = float(np.average(off, weights=weights))
    return found


@dataclass(frozen=True)
class Regret:
    """A problem's chosen plan beside the best one that was measured."""

    problem: str
    chosen: Candidate
    best: Candidate
    regret: float
    held_out: bool


def regrets(table: Table, calibration: Calibration) -> list[Regret]:
    """What the plan that a calibration ranks first loses, by problem; no conversions."""
    found: list[Regret] = []
    groups: dict[str, list[Observation]] = {}
    for o in observations(table, calibration):
        groups.setdefault(o.problem, []).append(o)
    for id, group in groups.items():
        chosen = min(group, key=lambda o: (_cautious(o, calibration), o.candidate))
        best = min(group, key=lambda o: o.seconds)
        found.append(
            Regret(
                id,
                chosen.candidate,
                best.candidate,
                chosen.seconds / best.seconds - 1,
                chosen.held_out,
            )  # fmt: skip
        )
    return found


def _cautious(o: Observation, calibration: Calibration) -> float:
    """What the strategy ``roofline`` ranks by."""
    return predicted(o, calibration) * (1 + calibration.doubt(o.work.family))


def report(table: Table, calibration: Calibration) -> str:
    """Errors by family, and regret, of the problems that were fitted and of those that were held out."""
    seen = [*observations(table, calibration), *conversions(table)]
    lines = [f"{'family':22} {'fitted':>24} {'held out':>24}", ""]
    for family, group in sorted(by_family(seen).items()):
        cells = [f"{family:22}"]
        for held in (False, True):
            part = [o for o in group if o.held_out == held]
            if part:
                e = errors(part, calibration)
                cells.append(f"{e.count:6} {e.median:8.1%} {e.p90:8.1%}")
            else:
                cells.append(" " * 24)
        lines.append(" ".join(cells))
    found = regrets(table, calibration)
    for held in (False, True):
        part = [r.regret for r in found if r.held_out == held]
        if part:
            lines.append(
                f"regret, {'held out' if held else 'fitted'}: {len(part)} problems, mean "
                f"{np.mean(part):.2%}, worst {max(part):.1%}"
            )
    worst = sorted(found, key=lambda r: -r.regret)[:25]
    lines += [
        f"  {r.regret:6.1%} {'held out' if r.held_out else 'fitted':8} {r.problem}: {r.chosen}, best {r.best}"
        for r in worst
        if r.regret > 0.05
    ]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Fit a calibration to a recorded table.")
    parser.add_argument("table", help="a table's name or FOLDER/NAME")
    parser.add_argument("-o", "--output", help="where to write the calibration")
    parser.add_argument("--only-report", metavar="FILE", help="judge this calibration")
    options = parser.parse_args(argv)
    table: Any = read_table(options.table)
    if options.only_report:
        made = read_calibration(Path(options.only_report), table.target)
    else:
        start = prior(table.target)
        made = replace(
            fit(table, start),
            machine=machine_of(table),
            date=datetime.now(UTC).date().isoformat(),
        ).rounded()

    print(report(table, made))
    if options.output:
        Path(options.output).write_text(
            json.dumps(made.to_json(), indent=1) + "\n", encoding="utf-8"
        )
        print(f"wrote {options.output}", file=sys.stderr)


def machine_of(table: Table) -> str:
    """The machine of a table in a few words."""
    machine = table.meta.get("machine", "")
    if not isinstance(machine, dict):
        return str(machine)
    facts = cast("dict[str, Any]", machine)
    if facts.get("gpu"):
        return str(facts["gpu"])
    cores = f", {facts['cores']} cores" if facts.get("cores") else ""
    return f"{facts.get('cpu', 'a processor')}{cores}"


def prior(target: str) -> Calibration:
    """The costs that nobody has measured."""
    backend = known_target(target).backend
    return Calibration(target, "not measured", "", MACHINES[backend], FAMILIES[backend])


if __name__ == "__main__":
    main()
