"""Our own candidates: default and tuned, on a stand-in for a GPU's kernel that computes with torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from sparsecc.backends.triton import compile_process
from sparsecc.bench import ours
from sparsecc.bench.cells import Cell, all_cells
from sparsecc.bench.problem import Problem
from sparsecc.bench.weights import Matrix
from sparsecc.diagnostics import SparseccError
from sparsecc.kernel import Compiled

torch: Any = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")


@dataclass
class Packed:
    """Like a packed operand: arrays by role."""

    arrays: dict[str, Any]
    facts: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def nbytes(self) -> int:
        return sum(a.numel() * a.element_size() for a in self.arrays.values())


@dataclass
class FakeKernel:
    cell: Cell
    schedule: str = "first"
    packs: list[Any] = field(default_factory=list[Any])
    space = ("first", "second", "third", "fourth", "fifth")
    sized = None

    @property
    def plan(self) -> Any:
        step = SimpleNamespace(
            launch=SimpleNamespace(kernel="k0"), space=self.space, schedule=self.schedule,
            source=f"text of {self.schedule}",
        )  # fmt: skip
        return SimpleNamespace(tiles=(step,))

    def pack(self, W: Any, tokens: int | None = None) -> Packed:
        self.packs.append(W)
        return Packed({"packed": W.clone()}, {} if tokens is None else {"steps": 8})

    def with_options(self) -> FakeKernel:
        return replace(self)

    def prepared(self, operands: Any) -> Any:
        return list(operands.values()), self

    def scheduled(self, schedules: dict[str, str]) -> FakeKernel:
        return replace(self, schedule=schedules["k0"])

    def __call__(self, out: Any, **operands: Any) -> Any:
        weight = operands.pop(self.cell.operation.weight)
        dense = weight.arrays["packed"] if isinstance(weight, Packed) else weight.to_dense()
        if self.cell.operation.name == "SDDMM":
            whole = dense * (operands["U"] @ operands["V"].t())
            return whole.to_sparse_csr()
        (x,) = operands.values()
        out.copy_(x @ dense.t() if self.cell.operation.name == "linear" else dense @ x)
        return out


def small(group: str, **changes: Any) -> Cell:
    found = next(c for c in all_cells() if c.group == group)
    sizes: dict[str, Any] = {"rows": 64, "columns": 64, "width": 8, "dtype": "f32"}
    return replace(found, **(sizes | changes))


@pytest.mark.parametrize("cell", [
    small("2:4"), small("unstructured", dtype="f16"), small("BSR"), small("CSR"), small("SDDMM"),
], ids=str)  # fmt: skip
def test_default_and_the_other_schedules(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = FakeKernel(cell)

    def compiled(asked: Cell, target: str) -> FakeKernel:
        assert (asked, target) == (cell, "sm_90")
        return kernel

    asked: list[str] = []

    def missing(kernels: Iterable[FakeKernel], target: str) -> None:
        asked.extend(kernel.plan.tiles[0].source for kernel in kernels)

    monkeypatch.setattr(ours, "compiled", compiled)
    monkeypatch.setattr(ours, "compile_missing", missing)

    def pack_sum(W: Any, steps: int) -> Packed:
        return Packed({"packed": W.clone()}, {"steps": steps})

    monkeypatch.setattr(ours, "pack_sum_2_4", pack_sum)
    problem = Problem(cell, Matrix(cell, "cpu"))
    found = list(ours.Ours("sm_90")(problem))
    # A sum is packed in two ways, and each has all schedules.
    more = list(FakeKernel.space) if cell.format == "2:4+CSR" else []
    assert [c.name for c in found] == ["default", "second", "third", "fourth", "fifth", *more]
    calls: list[Any] = [c.calls[0] for c in found]
    assert [c.func.schedule for c in calls] == [*FakeKernel.space, *more]
    assert asked == [f"text of {name}" for name in [*FakeKernel.space[1:], *more]]
    for candidate in found:
        assert problem.errors(candidate).accepted(cell.dtype), candidate.name
    # Packed once, whatever the number of copies that take turns.
    assert len(kernel.packs) == (cell.format in ours.PACKED)
    assert len(found[0].calls) == 256
    copies: list[Any] = list(found[0].calls)
    places = {id(call.keywords[cell.operation.weight]) for call in copies}
    assert len(places) == 256
    if more:
        facts = [call.keywords["W"].facts["steps"] for call in calls]
        assert facts == [8] * 5 + [4] * 5


def test_compiling_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = small("2:4")

    class Kernel(FakeKernel):
        @property
        def compiled(self) -> tuple[str, ...]:
            if self.schedule == "third":
                raise SparseccError("too many registers")
            return ("code",)

    def made(cell: Cell, target: str) -> FakeKernel:
        return Kernel(cell)

    monkeypatch.setattr(ours, "compiled", made)
    assert ours.compile_one(cell, "sm_90") == 4

    def broken(cell: Cell, target: str) -> Any:
        raise SparseccError("no kernel for it")

    monkeypatch.setattr(ours, "compiled", broken)
    assert ours.compile_one(cell, "sm_90") == "no kernel for it"


def test_only_what_the_cache_has_not_got_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    code = Compiled.__new__(Compiled)
    kept: list[Any] = []

    def read(source: str, target: str) -> Any:
        return code if source == "text of first" else None

    def compile_many(sources: list[str], *others: Any) -> list[Any]:
        assert sources == ["text of second", "text of third"]
        return [code, SparseccError("too many registers")]

    monkeypatch.setattr(ours.tile_cache, "read", read)
    monkeypatch.setattr(ours.tile_cache, "keep", kept.append)
    monkeypatch.setattr(compile_process, "compile_many", compile_many)
    cell = small("2:4")
    names = ("first", "second", "third", "second")
    ours.compile_missing([FakeKernel(cell, name) for name in names], "sm_90")
    assert kept == [code]


def test_waiting_for_the_compiler() -> None:
    """In processes of their own; a width that no format has is told as what went wrong."""
    cell = small("BSR", format="BSR(0,0)")
    with ours.compile_ahead([cell, replace(cell, sparsity=0.95)], "sm_90", 1) as made:
        assert "BSR" in str(made(cell))


def test_a_contraction_is_compiled_for_what_it_will_meet() -> None:
    cell = small("2:4", width=9)
    asked: list[dict[str, Any]] = []

    def remake(**options: Any) -> str:
        asked.append(options)
        return "variant"

    kernel = SimpleNamespace(sized=True, request=SimpleNamespace(tokens=None), remake=remake)
    assert ours.sized(kernel, cell) == "variant"
    assert asked == [{"tokens": 16, "rows": 64, "reduction": 64, "aligned": True, "even": True}]
    assert ours.sized(kernel, replace(cell, format="2:4+CSR")) is None
    kernel.sized = None
    assert ours.sized(kernel, cell) is kernel


@pytest.mark.parametrize("cell", [
    small("CSR"), small("CSR", dtype="f16", pattern="rmat"), small("SpMV", width=1), small("SDDMM"), small("BSR"),
], ids=str)  # fmt: skip
def test_kernels_of_the_cells_in_the_interpreter(cell: Cell) -> None:
    """Real kernels, called as the bench calls them."""
    kernel = ours.compiled(cell, "sm_90").with_options(interpret=True)
    problem = Problem(cell, Matrix(cell, "cpu"))
    ((weights, size),) = ours.weights_of(problem, kernel)
    candidate = ours.candidate(problem, kernel, weights[:2], size, "default")
    assert problem.errors(candidate).accepted(cell.dtype)
    assert candidate.nbytes > size > 0
