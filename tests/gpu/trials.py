"""The sweep's expressions for which a GPU path is claimed, and one of them computed by it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sparsecc import api, driver
from sparsecc.diagnostics import UnsupportedError
from tests.numeric.test_tiles import all_claimed, claimed, patterns
from tests.oracle.corpus import ROWS
from tests.sweep import Trial, problem, random_trial, sample

KINDS = ("f16", "bf16", "i8", "u8", "bool")


def evaluate(text: str, *, out: str | None, operands: Any, interpret: bool = False) -> Any:
    """``api.evaluate`` on the GPU that is present, or in the interpreter."""
    kernel = api.compile(text, out=out, operands=operands, target="gpu", interpret=interpret)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that operands of the host are brought to the device
        return kernel.call(operands)


def whole_sweep() -> Iterator[Trial]:
    """A few trials of each row, a sample of all, results in a format, other types."""
    for row in ROWS:
        pool = list(claimed(row))
        places = dict.fromkeys((0, len(pool) // 3, len(pool) // 2, len(pool) - 1))
        yield from (pool[n] for n in places)
    yield from sample(all_claimed(), 997)
    for row in ROWS:
        if row.name in ("scale", "sddmm", "sddmm_t", "row_scale", "diag_both"):
            yield from (t for t in patterns(row) if t.out in ("SV", "CSR", "CSC", "DCSR", "COO"))
        if row.name in ("spmm", "sddmm", "spmv", "add2", "mttkrp"):
            plain = [t for t in claimed(row) if set(t.formats.values()) <= {"dense", "CSR", "CSF"}]
            for kind in KINDS:
                yield from (replace(t, dtypes=dict.fromkeys(t.dtypes, kind)) for t in plain[-2:])


def generated(count: int) -> Iterator[Trial]:
    """Generated expressions with real numbers; some are refused."""
    for number in range(count):
        trial = replace(random_trial(number), out="dense")
        if "c128" not in trial.dtypes.values():
            yield trial


def check(
    trials: Sequence[Trial], interpret: bool = False, refused: type[Exception] = UnsupportedError
) -> list[str]:
    """What is wrong with trials, one text each; ``refused`` starts the text of a refusal."""
    found: list[str] = []
    for trial in trials:
        try:
            wrong = problem(trial, partial(evaluate, interpret=interpret))
        except refused as error:
            found.append(f"refused: {trial}\n{error}")
            continue
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        found.append(f"{trial}\n{wrong}" if wrong else "")
    driver.forget()
    return found
