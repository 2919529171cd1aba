"""Tuning without a GPU: candidates, the timer that is given, what fails, what is kept on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparsecc.backends.triton import compile_process
from sparsecc.diagnostics import SparseccError
from sparsecc.runtime import autotune, tile_cache
from sparsecc.runtime.tile_execute import TileProgram
from sparsecc.runtime.tile_kernel import TileKernel
from tests.unit.backends.triton.kernels import SPMV
from tests.unit.runtime.gpu_doubles import (
    MATMUL,
    SCHEDULES,
    Library,
    Machine,
    Remakes,
    kernel_of,
    spmv_plan,
    torch,
)

TIMES = {SCHEDULES[0]: 30.0, SCHEDULES[1]: 10.0, SCHEDULES[2]: 20.0}


class Timer:
    """Says how long a schedule takes, and remembers that it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, program: TileProgram, tensors: Sequence[Any]) -> float:
        (step,) = program.plan.tiles
        self.asked.append(step.schedule)
        return TIMES[step.schedule]


@pytest.fixture
def remakes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Remakes:
    monkeypatch.setenv("SPARSECC_CACHE", str(tmp_path))
    monkeypatch.setattr(tile_cache, "_kept", {})
    return Remakes(Machine(Library()))


def operands(tokens: int = 8) -> dict[str, Any]:
    return {"X": torch.ones(tokens, 16), "W": torch.ones(3, 16)}


def used(kernel: TileKernel, given: dict[str, Any]) -> str:
    """The schedule that a call runs with."""
    (step,) = kernel.prepared(given)[1].plan.tiles
    return step.schedule


def test_the_fastest_is_used_from_then_on(remakes: Remakes) -> None:
    kernel, timer = remakes.kernel(), Timer()
    assert used(kernel, operands()) == SCHEDULES[0]
    kernel(**operands())
    found = kernel.autotune(operands(), timer=timer)
    assert timer.asked == list(SCHEDULES)
    assert found.schedules == {"matmul": SCHEDULES[1]}
    assert found.times == {"matmul": TIMES}
    assert used(kernel, operands()) == SCHEDULES[1]
    assert torch.equal(kernel(**operands()), torch.full((8, 3), 16.0))
    assert str(found).splitlines()[0] == f"matmul:      10.00 us  {SCHEDULES[1]}"
    # Other extents are another kernel.
    assert used(kernel, operands(tokens=40)) == SCHEDULES[0]


def test_the_result_is_found_on_disk(remakes: Remakes) -> None:
    timer = Timer()
    remakes.kernel().autotune(operands(), timer=timer)
    other = Remakes(Machine(Library()))
    found = other.kernel().autotune(operands(tokens=9), timer=timer)  # the bucket of 16
    assert len(timer.asked) == 6 and not found.stored
    found = other.kernel().autotune(operands(tokens=8), timer=timer)
    assert len(timer.asked) == 6 and found.stored
    assert used(other.kernel(), operands()) == SCHEDULES[1]
    other.kernel().autotune(operands(), timer=timer, again=True)
    assert len(timer.asked) == 9


def test_a_damaged_result_is_measured_anew(remakes: Remakes, tmp_path: Path) -> None:
    timer = Timer()
    remakes.kernel().autotune(operands(), timer=timer)
    (path,) = (tmp_path / "tuned").iterdir()
    path.write_text("{")
    remakes.kernel().autotune(operands(), timer=timer)
    assert len(timer.asked) == 6


def test_tuned_when_operands_come(remakes: Remakes, monkeypatch: pytest.MonkeyPatch) -> None:
    timer = Timer()

    def made(_machine: Any) -> Timer:
        return timer

    monkeypatch.setattr(autotune, "ColdTimer", made)
    kernel = remakes.kernel().with_options(tune=True)
    kernel._machine = remakes.machine  # pyright: ignore[reportPrivateUsage]
    for _ in range(2):
        kernel(**operands())
    assert len(timer.asked) == 3
    kernel(**operands(tokens=100))
    assert len(timer.asked) == 6


def spoiled(remakes: Remakes, number: int, before: str, after: str) -> TileKernel:
    """The kernel, one of whose schedules has another text."""
    kernel = remakes.kernel()
    variant = kernel.prepared(operands())[1]
    broken = variant.scheduled({"matmul": SCHEDULES[number]})
    (step,) = broken.plan.tiles
    text = step.source.text.replace(before, after)
    assert text != step.source.text
    source = replace(step.source, text=text)
    broken.plan = replace(broken.plan, steps=(replace(step, source=source),))
    return kernel


def test_what_does_not_compile_is_left_out(remakes: Remakes) -> None:
    kernel = spoiled(remakes, 1, "tl.cdiv(K, 16)", "tl.cdiv(nothing, 16)")
    timer = Timer()
    found = kernel.autotune(operands(), timer=timer, workers=2)
    assert timer.asked == [SCHEDULES[0], SCHEDULES[2]]
    assert found.schedules == {"matmul": SCHEDULES[2]}
    assert "nothing" in found.failed["matmul"][SCHEDULES[1]]


def test_another_result_is_left_out(remakes: Remakes) -> None:
    kernel = spoiled(remakes, 1, "ldy + n[None, :], total", "ldy + n[None, :], total + 1")
    found = kernel.autotune(operands(), timer=Timer())
    assert found.failed == {"matmul": {SCHEDULES[1]: "another result than the first schedule"}}
    assert found.schedules == {"matmul": SCHEDULES[2]}


def test_time_that_is_up_ends_the_search(remakes: Remakes) -> None:
    timer = Timer()
    found = remakes.kernel().autotune(operands(), timer=timer, seconds=0)
    assert timer.asked == [SCHEDULES[0]]  # one is always measured
    assert found.schedules == {"matmul": SCHEDULES[0]}


def test_none_that_runs(remakes: Remakes, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(sources: Sequence[Any], target: str, *_more: Any) -> list[Any]:
        kind = compile_process.CompileFailed
        return [kind(kernel="matmul", target=target, words="no") for _ in sources]

    monkeypatch.setattr(compile_process, "compile_many", fails)
    with pytest.raises(SparseccError, match=r"none of the 3 schedules of kernel matmul runs: .*no"):
        remakes.kernel().autotune(operands(), timer=Timer())


def test_nothing_to_tune(remakes: Remakes) -> None:
    kernel = kernel_of(spmv_plan(SPMV), remakes.machine)
    matrix = torch.eye(4).to_sparse_csr()
    matrix = torch.sparse_csr_tensor(
        matrix.crow_indices().int(), matrix.col_indices().int(), matrix.values(), size=(4, 4)
    )
    with pytest.raises(SparseccError, match="no GPU kernel with more than one schedule"):
        kernel.autotune(A=matrix, x=torch.ones(4))


def test_results_agree_but_for_rounding() -> None:
    machine = Machine(Library())

    def some(*values: float) -> Any:
        from sparsecc.formats import parse_format
        from sparsecc.runtime.tile_operands import bound

        return bound(
            (len(values),),
            {"values": torch.tensor(values, dtype=torch.float32)},
            parse_format("dense", 1),
        )

    assert autotune.agree(some(1, 100), some(1.5, 101), machine)
    assert not autotune.agree(some(1, 100), some(5, 101), machine)
    assert not autotune.agree(some(1, 100), some(1, float("nan")), machine)
    assert autotune.agree(some(float("nan")), some(float("nan")), machine)
    assert MATMUL.entry == "matmul"
