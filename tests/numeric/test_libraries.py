"""The sweep by libraries: the corpus' products of two tensors against the oracle, where a library takes them.

What is refused must be what ``refusal`` names; a generated kernel never takes over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from sparsecc.kernel import Library
from sparsecc.selection.engines import EngineRefused
from tests.oracle.corpus import ROWS
from tests.sweep import Trial, row_trials, run
from tests.unit.runtime.library_calls import compiled

ACCESS = r"\w+[(\[][^)\]]*[)\]]"
PRODUCT = re.compile(rf"\w+([(\[][^)\]]*[)\]])? = {ACCESS} \* {ACCESS}")
ROWS_OF_TWO = [row for row in ROWS if PRODUCT.fullmatch(row.text)]
COMPUTED = {"blas": 50, "scipy": 250}
"""Trials that are not refused, at least."""
SPARSE = {"blas": set[str](), "scipy": {"CSR", "CSC", "COO", "BSR(2,2)"}}


def trials(engine: str) -> Iterator[Trial]:
    """The trials whose formats an engine may take, in types that it takes and others."""
    for row in ROWS_OF_TWO:
        for trial in row_trials(row):
            formats = [f for f in trial.formats.values() if f != "dense"]
            wanted = len(formats) == bool(SPARSE[engine]) and SPARSE[engine].issuperset(formats)
            if wanted and trial.out in (None, "dense"):
                for dtype in ("f64", "f32", "i32", "f16"):
                    yield replace(trial, dtypes=dict.fromkeys(trial.dtypes, dtype))


@pytest.mark.parametrize("engine", SPARSE)
def test_products_of_the_corpus(engine: str) -> None:
    def compute(text: str, *, out: str | None, operands: dict[str, Any]) -> Any:
        kernel = compiled(text, operands, engine, out=out)
        assert [step.engine for step in kernel.plan.libraries] == [engine]
        assert isinstance(kernel.plan.steps[-1], Library) and not kernel.plan.kernels()
        return kernel.call(operands)

    report = run(trials(engine), compute)
    assert not report.wrong, "\n\n".join(report.wrong[:5])
    assert set(report.refusals) <= {EngineRefused.__name__}, report
    assert report.cases - report.refusals.total() >= COMPUTED[engine], report
