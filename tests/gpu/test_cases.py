"""The GPU's acceptance tests without a GPU: small cases of the same kind in Triton's interpreter."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from tests.gpu import cases, workers  # noqa: E402
from tests.gpu.cases import FORMATS, GROUPS, Program, programs, run  # noqa: E402
from tests.gpu.trials import check, generated, whole_sweep  # noqa: E402
from tests.gpu.workers import Submit  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:operand W")
"""That a weight is brought to the interpreter."""

BLOCKS = [name for name in GROUPS if not name.startswith("2:4")]
"""Formats whose kernels the interpreter runs."""


def small(program: Program) -> Program:
    return replace(
        program, rows=min(program.rows, 21), columns=min(program.columns, 35), ranges=((1, 1), (5, 9), (18, 20))
    )  # fmt: skip


@pytest.mark.parametrize("group", BLOCKS)
def test_formats_in_the_interpreter(group: str) -> None:
    for program in programs(group, 3):
        found = list(run(small(program), "interpreter", 2))
        assert found == ["", ""], "\n".join(found)


def test_what_is_drawn() -> None:
    every = [p for group in GROUPS for p in programs(group, 20)]
    assert {p.format for p in every} == set(FORMATS)
    for p in every:
        assert p == cases.program(p.format, p.dtype, p.seed)
        first, second = (cases.Maker(p, "interpreter").weight() for _ in range(2))
        assert torch.equal(first, second)
        assert first.shape == (p.rows, p.columns)
        if p.format == "2:4":
            assert p.columns % 4 == 0
            assert ((first.view(p.rows, -1, 4) != 0).sum(-1) <= 2).all()
    of_structured = [p for p in every if p.format == "2:4"]
    assert any(p.columns == 4 for p in of_structured)
    assert any(p.rows % 16 and p.rows % 2 for p in of_structured)
    assert {p.columns_first for p in of_structured} == {True, False}
    assert any(p.batch for p in of_structured) and any("v[" in p.text for p in of_structured)


def test_wrong_results_are_found() -> None:
    p = small(cases.program("dense", "f16", 0))
    maker = cases.Maker(p, "interpreter")
    weight, x = maker.weight(), maker.numbers(p.columns, 7)
    p = replace(p, text="Y[n,m] = W[n,k] * X[k,m]")
    expected, bound = cases.reference(p, x, weight, None)
    right = (weight.float() @ x.float()).half().double()
    assert cases.differs(right, expected, bound) == ""
    wrong = right.clone()
    wrong[-1, 3] = float("nan")
    assert f"the first at ({p.rows - 1}, 3): nan" in cases.differs(wrong, expected, bound)
    wrong = right.clone()
    wrong[0, 0] *= 1 + 2**-9
    assert cases.differs(wrong, expected, bound)
    assert "shape" in cases.differs(right[1:], expected, bound)


def test_workers_tell_what_went_wrong() -> None:
    """Also that the device was lost, after which nothing is run."""

    def job(text: str) -> list[str]:
        if text == "bad":
            raise ValueError("no")
        return [""]

    assert workers.guarded(job, "good") == [""]
    assert workers.guarded(job, "bad") == ["bad: ValueError: no"]
    workers._lost.append("a case")  # pyright: ignore[reportPrivateUsage] # as if
    try:
        assert workers.guarded(job, "good") == ["not run: this worker lost the device in a case"]
    finally:
        workers._lost.clear()  # pyright: ignore[reportPrivateUsage]


def test_workers_run_jobs(submit: Submit) -> None:
    trials = list(generated(2))
    assert submit(check, trials, True).result() == check(trials, interpret=True)


def test_trials_in_the_interpreter() -> None:
    trials = [t for t in whole_sweep() if "2:4" not in str(t.formats)]
    assert len(trials) > 250
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert check(trials[::40], interpret=True) == [""] * len(trials[::40])
        found = check(list(generated(12)), interpret=True)
    assert not [text for text in found if text and not text.startswith("refused: ")]
