"""Graphs, events, turns: on a clock of our own."""

from __future__ import annotations

from typing import Any

import pytest

from sparsecc.bench import timing
from tests.unit.bench.fakes import FakeCuda, FakeTimer, module


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    fake = FakeCuda()

    def load(name: str) -> Any:
        assert name == "torch"
        return module(fake)

    monkeypatch.setattr(timing, "import_module", load)
    return fake


def test_a_graph_gives_the_mean_of_its_calls(cuda: FakeCuda) -> None:
    timer = timing.GraphTimer()
    calls = (cuda.kernel(0.010), cuda.kernel(0.030))
    assert timer.us(calls, 10.0) == pytest.approx(20.0)
    assert timer.how == "graph"
    before = cuda.now
    assert timer.us(calls, 10.0) == pytest.approx(20.0)
    # The graph of the first time is played again, five times; nothing is captured anew.
    assert cuda.now - before == pytest.approx(5 * 50 * 0.040, rel=0.01)
    assert timer.look(calls) == pytest.approx(30.0)
    timer.forget()
    assert not timer.graphs


@pytest.mark.parametrize("openly", [True, False])
def test_what_can_not_be_captured_is_timed_by_events(cuda: FakeCuda, openly: bool) -> None:
    timer = timing.GraphTimer()
    calls = (cuda.waiting(0.5, openly),)
    assert timer.us(calls, 10.0) == pytest.approx(500.0)
    # What waits for the device can't be given to it beforehand.
    assert timer.how == ("events" if openly else "events, queued")
    assert bool(cuda.slept) is not openly
    assert timer.us(calls, 10.0) == pytest.approx(500.0)
    assert cuda.captures == (0 if openly else 1)
    assert cuda.mode == "default"
    assert timer.us((cuda.kernel(0.1),), 1.0) == pytest.approx(100.0)
    assert timer.how == "graph"


def test_rivals_take_turns() -> None:
    timer = FakeTimer()
    first, second = (lambda: None,), (lambda: None,)
    timer.times = {id(first): 3.0, id(second): 4.0}
    found = timing.interleaved(timer, {"a": first, "b": second}, rounds=2, ms=1.0)
    assert timer.measured == [id(first), id(second), id(second), id(first)]
    assert (found["a"].us, found["b"].us) == (3.0, 4.0)


def test_whose_turn_fails_is_told() -> None:
    told: list[str] = []

    class Broken(FakeTimer):
        def us(self, calls: object, ms: float) -> float:
            if calls == ("b",):
                raise RuntimeError("CUDA error")
            return 1.0

    turns: dict[str, Any] = {"a": ("a",), "b": ("b",)}
    with pytest.raises(RuntimeError, match="CUDA error"):
        timing.interleaved(Broken(), turns, 1, 1.0, told.append)
    assert told == ["a", "b"]


def test_copies_are_more_than_the_cache_holds() -> None:
    assert timing.copies(4096 * 4096 * 2) == 12
    assert timing.copies(28672 * 8192 * 2) == 1
    assert timing.copies(1000) == 256
