"""The differential sweep: compiled kernels against the oracle, over expressions, formats, types and extents.

A case is drawn from its number alone. A *refusal* is a typed error before or instead of a result; anything
else that differs from the oracle is wrong. ``python -m tests.sweep --count 20000 --seed 1`` runs a sweep by hand.
"""

from __future__ import annotations

import argparse
import itertools
import random
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparsecc import api, driver
from sparsecc.diagnostics import FormatError, LimitError, UnsupportedError
from sparsecc.formats import parse_format
from sparsecc.frontends import dtypes
from sparsecc.frontends.ast import Access, Scalar, walk
from sparsecc.frontends.index_notation import parse
from sparsecc.kernel import Launch
from sparsecc.storage.entries import from_coords
from sparsecc.storage.tensor import SparseTensor
from tests.oracle.corpus import ROWS, Row
from tests.oracle.evaluator import Operand, evaluate
from tests.oracle.generator import generate, random_pattern, random_values

FORMATS: dict[int, tuple[str, ...]] = {
    0: ("dense",),
    1: ("dense", "SV", "BITMAP"),
    2: ("dense", "CSR", "CSC", "COO", "DCSR", "BSR(2,2)", "ELL", "2:4", "2:4+CSR", "BITMAP"),
    3: ("dense", "CSF", "CSF(2,0,1)", "CSF(1,2,0)", "COO(3)", "dds"),
    4: ("dense", "CSF", "CSF(3,1,0,2)", "COO(4)"),
}
DTYPES = ("f64", "f32", "i32", "f16", "bf16")
EXTENTS = (0, 1, 2, 3, 5, 7)
TOLERANCES = {"f32": 1e-5, "c64": 1e-5, "f16": 2e-3, "bf16": 1.6e-2}
"""Of results that are not exact; two units in the last place of 16 bits."""
REFUSALS = (UnsupportedError, FormatError, LimitError)


@dataclass(frozen=True)
class Trial:
    """One case: what to compute, from what, in which formats."""

    text: str
    shapes: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, str]
    formats: Mapping[str, str]
    out: str | None
    seed: int

    def __str__(self) -> str:
        operands = ", ".join(
            f"{n}:{'x'.join(map(str, s))}:{self.dtypes[n]}:{self.formats[n]}"
            for n, s in self.shapes.items()
        )
        return f"{self.text}  [{operands}] out={self.out} seed={self.seed}"


@dataclass
class Report:
    """What a sweep found."""

    cases: int = 0
    refusals: Counter[str] = field(default_factory=Counter[str])
    examples: dict[str, str] = field(default_factory=dict[str, str])
    """One trial of each class of refusal."""
    wrong: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        refused = ", ".join(f"{n} {name}" for name, n in sorted(self.refusals.items())) or "none"
        return f"{self.cases} cases, refused: {refused}; wrong: {len(self.wrong)}"


def accesses(text: str) -> dict[str, tuple[str, ...]]:
    """The index names of each tensor that an expression reads (of its first use)."""
    found: dict[str, tuple[str, ...]] = {}
    for statement in parse(text).statements:
        for node in walk(statement.expr):
            if isinstance(node, Access):
                found.setdefault(node.name, tuple(str(i) for i in node.indices))
            elif isinstance(node, Scalar):
                found.setdefault(node.name, ())
    return found


def target_rank(text: str) -> int:
    return len(getattr(parse(text).statements[-1].target, "indices", ()))


def row_trials(row: Row) -> Iterator[Trial]:
    """Every combination of formats for a row; extents and types are drawn for each."""
    used = accesses(row.text)
    rank = target_rank(row.text)
    choices = [FORMATS[len(indices)] for indices in used.values()]
    combinations = itertools.product(itertools.product(*choices), (*FORMATS[rank], None))
    for number, (formats, out) in enumerate(combinations):
        seed = zlib.crc32(f"{row.number} {number}".encode())
        rng = random.Random(seed)
        names = sorted({i for indices in used.values() for i in indices})
        extents = {
            i: rng.choice((1, 2, 3, 5, 7, 5, 7) if rng.random() < 0.93 else EXTENTS) for i in names
        }
        kind = rng.choice(DTYPES)
        yield Trial(
            row.text,
            {name: tuple(extents[i] for i in indices) for name, indices in used.items()},
            dict.fromkeys(used, kind),
            dict(zip(used, formats, strict=True)),
            out,
            seed,
        )


def random_trial(seed: int) -> Trial:
    """A generated expression in random formats and mixed types."""
    rng = random.Random(seed ^ 0x5EED)
    kinds = rng.choice(
        (
            ("f64",),
            ("f32",),
            ("i32",),
            ("f64", "f32", "i32"),
            ("i64", "u8", "f32"),
            ("c128", "f64"),
            ("bool",),
            ("f16",),
            ("bf16",),
            ("f16", "bf16", "f32", "i8"),
        )
    )
    case = generate(seed, kinds)
    formats = {
        name: _wide(rng, rng.choice(FORMATS[len(shape)])) for name, shape in case.shapes.items()
    }
    out = rng.choice((*FORMATS[target_rank(case.text)], None))
    out = None if out is None else _wide(rng, out)
    return Trial(case.text, case.shapes, case.dtypes, formats, out, seed)


def _wide(rng: random.Random, name: str) -> str:
    """A format now and then with widths of its own."""
    if name == "dense" or rng.random() < 0.8:
        return name
    widths = rng.choice(("i64/i64", "i64/i32", "i16/i8", "i32/i64"))
    # A bitmap's words take 32 bits.
    return f"{name}@{widths.replace('i16', 'i32') if 'BITMAP' in name else widths}"


def make_operands(trial: Trial) -> tuple[dict[str, Operand], dict[str, Any]]:
    """The oracle's operands, and ours."""
    rng = np.random.default_rng(trial.seed)
    plain: dict[str, Operand] = {}
    ours: dict[str, Any] = {}
    for name, shape in trial.shapes.items():
        values = random_values(rng, shape, trial.dtypes[name])
        name_of_format = trial.formats[name]
        if name_of_format == "dense" or not shape:
            plain[name], ours[name] = (values, None), values
            continue
        stored = random_pattern(rng, shape)
        if name_of_format.startswith("2:4") and "+" not in name_of_format:
            stored &= _at_most_two_of_four(stored)
        fmt = parse_format(name_of_format, len(shape))
        if fmt.padded:
            stored &= values != 0
        values = np.where(stored, values, values.dtype.type(0))
        plain[name] = (values, stored)
        ours[name] = from_coords(np.nonzero(stored), values[stored], shape, fmt)
    return plain, ours


def _at_most_two_of_four(stored: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    keep = np.zeros_like(stored)
    for start in range(0, stored.shape[-1], 4):
        group = stored[..., start : start + 4]
        keep[..., start : start + 4] = group & (np.cumsum(group, axis=-1) <= 2)
    return keep


def problem(trial: Trial, compute: Callable[..., Any] = api.evaluate) -> str:
    """What is wrong with the compiled answer; empty if nothing. Raises what the compiler raises."""
    plain, ours = make_operands(trial)
    values, stored = evaluate(trial.text, plain)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = compute(trial.text, out=trial.out, operands=ours)
    if isinstance(result, SparseTensor):
        if trial.out is not None and result.format.with_widths(0, 0) != parse_format(
            trial.out, values.ndim
        ).with_widths(0, 0):
            return f"the result is {result.format}"
        result.check("full")
        exact = not result.format.padded and not any(
            isinstance(t, SparseTensor) and t.format.padded for t in ours.values()
        )
        if exact:
            coords, _ = result.to_coords()
            found = np.zeros(result.shape, bool)
            found[coords] = True
            extra = found & ~stored
            missing = stored & ~found
            # An empty sum over dense factors, and a temporary scalar, count as stored zeros.
            loose = 0 in {e for shape in trial.shapes.values() for e in shape} or _has_temporaries(
                trial, ours
            )
            if missing.any() or (extra.any() and not loose) or (values[extra] != 0).any():
                return f"stored differs: extra {np.argwhere(extra)[:3]}, missing {np.argwhere(missing)[:3]}"
        result = result.to_numpy()
    result = np.asarray(result)
    if result.dtype != values.dtype:
        return f"type {result.dtype}, not {values.dtype}"
    if result.shape != values.shape:
        return f"shape {result.shape}, not {values.shape}"
    tolerance = TOLERANCES.get(_name(values.dtype), 1e-12)
    if values.dtype.itemsize == 2 and dtypes.is_inexact(_name(values.dtype)):
        result, values = result.astype(np.float32), values.astype(np.float32)
    if values.dtype.kind in "fc":
        same = np.allclose(result, values, rtol=tolerance, atol=tolerance, equal_nan=True)
    else:
        same = np.array_equal(result, values)
    return "" if same else f"values differ:\n{result}\nwanted\n{values}"


def _has_temporaries(trial: Trial, ours: Mapping[str, Any]) -> bool:
    plan = api.compile(trial.text, out=trial.out, operands=ours).plan
    return sum(isinstance(step, Launch) for step in plan.steps) > 1


def _name(dtype: np.dtype[Any]) -> str:
    return next(n for n, t in dtypes.NUMPY.items() if t == dtype)


def run(
    trials: Sequence[Trial] | Iterator[Trial], compute: Callable[..., Any] = api.evaluate
) -> Report:
    """Run trials; wrong answers and crashes are listed, refusals counted by class."""
    report = Report()
    for trial in trials:
        report.cases += 1
        try:
            found = problem(trial, compute)
        except REFUSALS as refusal:
            report.refusals[type(refusal).__name__] += 1
            report.examples.setdefault(type(refusal).__name__, f"{trial}\n{refusal}")
            continue
        except Exception as error:
            found = f"{type(error).__name__}: {error}"
        if found:
            report.wrong.append(f"{trial}\n{found}")
        if report.cases % 64 == 0:
            # Kernels of past cases are not needed again, and there are thousands.
            driver.forget()
    return report


def all_row_trials() -> Iterator[Trial]:
    for row in ROWS:
        yield from row_trials(row)


def sample(trials: Iterator[Trial], one_in: int, salt: int = 0) -> Iterator[Trial]:
    """A fixed share of trials, chosen by hash."""
    for trial in trials:
        if (trial.seed + salt) % one_in == 0:
            yield trial


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="generated expressions")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--rows", type=int, default=0, help="one in so many combinations of the corpus (0: none)"
    )
    parser.add_argument("--shard", default="0/1")
    options = parser.parse_args()
    part, parts = map(int, options.shard.split("/"))
    trials: Iterator[Trial] = (
        random_trial(options.seed + n) for n in range(part, options.count, parts)
    )
    if options.rows:
        trials = itertools.chain(sample(all_row_trials(), options.rows, part), trials)
    report = run(trials)
    for text in report.wrong[:20]:
        print(text, end="\n\n")
    for text in report.examples.values():
        print(f"refused: {text}", end="\n\n")
    print(f"seed {options.seed}: {report}")


if __name__ == "__main__":
    main()
