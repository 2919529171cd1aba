"""Recording on a GPU, without one: tensors of torch on this processor, kernels in Triton's interpreter, a timer that
is not one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from sparsecc.diagnostics import SparseccError
from sparsecc.kernel import TileSource
from sparsecc.research import gpu_ahead, gpu_operands, gpu_plans, record_gpu
from sparsecc.research.corpus import CorpusProblem, Matrix, of_matrix
from sparsecc.research.generator import pattern
from sparsecc.research.gpu_ahead import Ahead
from sparsecc.research.gpu_operands import Inputs, Product, Ready, Weight
from sparsecc.research.measure_gpu import DeviceLost, Recorder, Settings, Work
from sparsecc.research.recording import Recording
from sparsecc.research.table import Time, read_table
from sparsecc.research.torch_statistics import statistics_of
from sparsecc.runtime import tile_cache
from sparsecc.selection.candidate import Candidate

torch: Any = pytest.importorskip("torch")
pytest.importorskip("triton")
pytestmark = pytest.mark.filterwarnings("ignore:Sparse")

IID: dict[str, Any] = {"family": "iid", "rows": 16, "columns": 32, "density": 0.3}
GROUPS: dict[str, Any] = {"family": "n:m", "rows": 16, "columns": 32, "n": 2, "m": 4}
BLOCKS: dict[str, Any] = {
    "family": "block", "rows": 32, "columns": 64, "block": [16, 16], "density": 0.5, "fill": 0.5,
}  # fmt: skip
LINEAR = of_matrix(Matrix(IID, "f16", "dense"), "linear", 8, "sm_80")
FITTING = of_matrix(Matrix(GROUPS, "f16", "dense"), "linear", 8, "sm_80")
SPMM = of_matrix(Matrix(IID, "f32"), "SpMM", 8, "sm_80")
SPMV = of_matrix(Matrix(IID, "f32"), "SpMV", None, "sm_80")
SDDMM = of_matrix(Matrix(IID, "f32"), "SDDMM", 4, "sm_80")
FEW = Settings(rounds=2)
DENSE, CUBLAS = Candidate.of({"W": "dense"}), Candidate.of({"W": "dense"}, "cublas")


class Timer:
    """10 microseconds a call, a look as many as it is told."""

    how = "fake"

    def __init__(self, look: float = 1.0) -> None:
        self.looked, self.sampled, self.us_of_look = 0, 0, look

    def us(self, calls: Sequence[Callable[[], Any]], ms: float) -> float:
        self.sampled += 1
        for call in calls:
            call()
        return 10.0 + self.sampled

    def look(self, calls: Sequence[Callable[[], Any]]) -> float:
        self.looked += 1
        return self.us_of_look


@pytest.fixture(autouse=True)
def few_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_operands, "copies", lambda size: 2)  # pyright: ignore


def prepared(*group: CorpusProblem) -> tuple[Weight, list[Work], dict[str, CorpusProblem]]:
    made = pattern(group[0].pattern)
    return record_gpu.prepared(group, made, "cpu", group[0].target, interpret=True)


def found(recorder: Recorder, *group: CorpusProblem) -> dict[str, Time]:
    """What is measured of the plans of a problem, by their names."""
    weight, works, _ = prepared(*group)
    return {str(t.candidate): t for _, ts in recorder.run([lambda: (weight, works)]) for t in ts}


# -- plans ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", [SPMM, SPMV, SDDMM], ids=lambda entry: entry.operation)
def test_plans_run_and_are_checked(entry: CorpusProblem) -> None:
    times = found(Recorder(Timer(), None, FEW), entry)
    good = {name for name, t in times.items() if t.checked}
    assert {name: t.failure for name, t in times.items() if name not in good} == {} or (
        entry is SDDMM and set(times) - good == {"A=dense by generated"}
    )
    assert "A=CSR by generated" in good
    for name in good:
        time = times[name]
        assert time.runs == 2 and time.seconds and 1.1e-5 <= time.seconds < 1e-3 and time.bytes
        assert time.conversion is not None and time.compile is not None


def test_a_linear_layer_has_its_libraries_and_formats() -> None:
    times = found(Recorder(Timer(), None, FEW), LINEAR)
    good = {name for name, t in times.items() if t.checked}
    assert {"W=dense by cublas", "W=BITMAP by generated"} <= good
    assert "W=BSR(16,16) by generated" not in times  # every block has an entry
    blocks = of_matrix(Matrix(BLOCKS, "f16", "dense"), "linear", 8, "sm_80")
    assert found(Recorder(Timer(), None, FEW), blocks)["W=BSR(16,16) by generated"].checked
    # Fragments of a matrix unit are not for the interpreter; the table says so.
    assert "NotInterpreted" in times["W=2:4+CSR by generated"].failure
    assert times["W=dense by cublas"].bytes == 16 * 32 * 2


def test_only_weights_that_fit_are_2_4() -> None:
    _, fitting, _ = prepared(FITTING)
    _, others, _ = prepared(LINEAR)
    assert Candidate.of({"W": "2:4"}) in fitting[0].candidates
    assert Candidate.of({"W": "2:4"}) not in others[0].candidates


def test_each_conversion_is_made_once_and_starts_from_what_is_stored() -> None:
    matrix = Matrix(BLOCKS, "f32")
    weight, works, _ = prepared(
        of_matrix(matrix, "SpMM", 8, "sm_80"), of_matrix(matrix, "SpMV", None, "sm_80")
    )
    assert weight.stored == "CSR"
    for _ in Recorder(Timer(), None, FEW).run([lambda: (weight, works)]):
        pass
    rows, seconds = weight.rows()
    assert seconds == 0.0 and torch.equal(rows.to_dense(), weight.dense)
    assert weight.spread > 0
    made = weight.kept["BSR(16,16)"]
    assert made[1] > weight.spread  # first spread out, then cut into blocks
    assert weight.keep("BSR(16,16)", lambda: pytest.fail("again")) == made


def test_blocks_that_reach_beyond_the_edge_are_taken() -> None:
    entry = of_matrix(Matrix(BLOCKS | {"rows": 20, "columns": 60}, "f32"), "SpMM", 8, "sm_80")
    assert found(Recorder(Timer(), None, FEW), entry)["A=BSR(16,16) by generated"].checked


def test_wrong_results_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoiled(product: Product, weight: Weight, inputs: Inputs, fmt: str) -> Ready:
        out = gpu_operands.poisoned(product)
        return Ready([lambda: out.fill_(1.0)], torch.as_tensor, out, 1, 0.0, 0.0)

    def lazy(product: Product, weight: Weight, inputs: Inputs, fmt: str) -> Ready:
        out = gpu_operands.poisoned(product)
        return Ready([lambda: out], torch.as_tensor, out, 1, 0.0, 0.0)

    for wrong in (spoiled, lazy):
        monkeypatch.setitem(gpu_plans.LIBRARIES, "cublas", wrong)
        timer = Timer()
        time = found(Recorder(timer, None, FEW), LINEAR)["W=dense by cublas"]
        assert time.seconds is None and "WrongResult" in time.failure


def test_slow_plans_are_looked_at_and_take_no_turns() -> None:
    weight, works, _ = prepared(SPMV)
    works = [replace(works[0], candidates=works[0].candidates[:2])]
    timer = Timer(look=6000.0)
    ((_, times),) = Recorder(timer, None, FEW).run([lambda: (weight, works)])
    assert timer.sampled == 0 and [t.runs for t in times] == [3, 3]
    assert [t.seconds for t in times] == [6e-3, 6e-3]


# -- runs ----------------------------------------------------------------------------------------


def test_a_recording_is_a_table(tmp_path: Path) -> None:
    output = Recording(tmp_path / "x")
    output.describe({"target": "sm_80"})
    weight, works, known = prepared(SPMM, SPMV)
    for work, times in Recorder(Timer(), None, FEW).run([lambda: (weight, works)]):
        output.add(known[work.name], times)
    table = read_table(str(tmp_path / "x"))
    assert list(table.problems) == [SPMM.id, SPMV.id]
    statistics = table.problems[SPMM.id].sparse.statistics
    assert statistics is not None and statistics.nnz == SPMM.make().nnz
    assert "cublas" in table.libraries and table.runs(SPMV.id)[0].checked


def test_it_stops_when_the_time_is_over() -> None:
    weight, works, _ = prepared(SPMM, SPMV)
    seen: list[str] = []
    whole = Recorder(Timer(), None, FEW).run([lambda: (weight, works)])
    assert [work.name for work, _ in whole] == [SPMM.id, SPMV.id]
    for work, _ in Recorder(Timer(), None, FEW).run([lambda: (weight, works)], lambda: bool(seen)):
        seen.append(work.name)
    assert seen == [SPMM.id]


def test_a_plan_that_loses_the_device_is_named_and_left_out() -> None:
    weight, works, _ = prepared(SPMV)
    fine = iter([True, True, False])

    def alive() -> None:
        if not next(fine):
            raise RuntimeError("an illegal memory access\nand more")

    with pytest.raises(DeviceLost) as error:
        list(Recorder(Timer(), None, FEW, alive=alive).run([lambda: (weight, works)]))
    lost = works[0].candidates[2]
    assert error.value.facts["digest"] == lost.digest
    assert "illegal memory access" in str(error.value) and SPMV.id in str(error.value)

    skip = frozenset({(SPMV.id, lost.digest)})
    ((_, times),) = Recorder(Timer(), None, FEW, skip=skip).run([lambda: (weight, works)])
    assert [t.candidate for t in times if "lost" in t.failure] == [lost]
    assert len(times) == len(works[0].candidates)


def test_a_weight_that_can_not_be_made_is_told() -> None:
    def broken() -> Any:
        raise torch.OutOfMemoryError("no room")

    weight, works, _ = prepared(SPMV)
    told: list[str] = []
    recorder = Recorder(Timer(), None, FEW, tell=told.append)
    assert len(list(recorder.run([broken, lambda: (weight, works)]))) == 1
    assert len(told) == 1 and "no room" in told[0]


def test_slow_moments_are_measured_again() -> None:
    class Pace:
        best = 100.0
        warmed = 0
        speeds: Iterator[float] = iter([100.0, 50.0])

        def now(self) -> float:
            return next(self.speeds)

        def warm(self) -> None:
            self.warmed += 1

    weight, works, _ = prepared(SPMV)
    works = [replace(works[0], candidates=works[0].candidates[:1])]
    timer, pace = Timer(), Pace()
    list(Recorder(timer, None, FEW, pace=pace).run([lambda: (weight, works)]))
    assert pace.warmed == 1 and timer.sampled == 2 * FEW.rounds


def test_patterns_are_made_once_and_in_order() -> None:
    groups = [[SPMM], [LINEAR], [FITTING]]
    with record_gpu.Patterns(groups, ahead=2) as patterns:
        for number, (problem,) in enumerate(groups):
            assert patterns.of(number).nnz == pattern(problem.pattern).nnz


# -- compiling ahead -----------------------------------------------------------------------------


def source(name: str) -> TileSource:
    return TileSource(name, f"# {name}", False, (), (), (), 1)


def test_kernels_are_compiled_once_and_failures_are_left_to_the_first_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled: list[str] = []
    go = Event()

    class Process:
        process, late = None, False

        def compile(self, source: TileSource, target: str) -> str:
            assert go.wait(10)
            compiled.append(source.entry)
            if source.entry == "bad":
                raise SparseccError("it does not compile")
            return source.entry

    kept: list[str] = []
    monkeypatch.setattr(gpu_ahead, "CompilerProcess", Process)
    monkeypatch.setattr(tile_cache, "read", lambda *_: None)  # pyright: ignore
    monkeypatch.setattr(tile_cache, "keep", kept.append)
    with Ahead("sm_90", 2) as ahead:
        sources = [source(name) for name in ("a", "bad", "a", "c")]
        ahead.ask(sources)
        assert not ahead.ready(sources) and ahead.pending == 3
        go.set()
        ahead.wait(sources)
        ahead.ask(sources)
        assert ahead.ready(sources) and ahead.pending == 0
    assert sorted(compiled) == ["a", "bad", "c"] and sorted(kept) == ["a", "c"]


# -- statistics ----------------------------------------------------------------------------------


@pytest.mark.parametrize("density", [0.0, 0.02, 0.3, 1.0])
@pytest.mark.parametrize("shape", [(64, 128), (37, 50), (66, 66), (1, 5)])
def test_statistics_are_those_of_the_tensor(shape: tuple[int, int], density: float) -> None:
    import numpy as np

    from sparsecc import asarray

    rng = np.random.default_rng(3)
    array = rng.standard_normal(shape).astype(np.float32)
    array[rng.random(shape) >= density] = 0
    if shape[0] == shape[1]:
        array += array.T.copy()
    wanted = asarray(array).statistics()
    statistics = statistics_of(torch.from_numpy(array), "f32")

    def numbers(value: Any) -> Any:
        """With floats that are equal up to rounding."""
        if isinstance(value, float):
            return pytest.approx(value, rel=1e-12, abs=1e-12)
        if is_dataclass(value):
            return [(f.name, numbers(getattr(value, f.name))) for f in fields(value)]
        return [numbers(v) for v in value] if type(value) is tuple else value  # pyright: ignore

    assert numbers(statistics) == numbers(wanted)


def test_large_matrices_are_looked_at_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    from sparsecc.research import torch_statistics

    dense = torch.randn(40, 30).masked_fill_(torch.rand(40, 30) < 0.7, 0)
    whole = statistics_of(dense, "f32")
    monkeypatch.setattr(torch_statistics, "PIECE", 100)
    assert statistics_of(dense, "f32") == whole
