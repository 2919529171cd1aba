"""From an expression to a GPU's kernel and back: stages, options of passes, schedules, the disk, the command line."""

from __future__ import annotations

import re
import sys
from collections.abc import Generator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from sparsecc import driver, plugins
from sparsecc.backends.triton import pipeline
from sparsecc.cli import main
from sparsecc.diagnostics import SparseccError
from sparsecc.runtime import gpu_flow
from sparsecc.runtime.tile_kernel import TileKernel
from tests.unit.runtime import tile_passes

TEXT = "y[i] = A[i,j] * x[j]"
A = sc.Spec((None, None), "f32", "CSR")
x = sc.Spec((None,), "f32")
ROWS = np.array([[1, 0, 2, 0], [0, 0, 0, 3], [4, 5, 0, 6]], "f4")
X = np.array([1, 2, 3, 4], "f4")


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """The passes and the emitter of this folder in the place of the real ones."""
    driver.forget()
    passes = {**plugins.passes(), "mark-tiles": f"{tile_passes.__name__}:MarkTiles"}
    monkeypatch.setattr(plugins, "passes", lambda: passes)
    plugins.pass_class.cache_clear()
    stages = {
        "tensor": (),
        "selected": ("generalize-named-ops", "select-formats"),
        "iteration": ("split-blocks", "schedule-loops", "sparsify"),
        "tiles": ("mark-tiles",),
    }
    monkeypatch.setattr(pipeline, "STAGES", stages)
    monkeypatch.setattr(pipeline, "OPTIONS", {"mark-tiles": ("tokens",)})
    monkeypatch.setattr(pipeline, "NUMBERS", {"loops": "mark-tiles"})
    emit: Any = ModuleType("emit")
    emit.emit_kernel = tile_passes.emit_kernel
    monkeypatch.setitem(sys.modules, "sparsecc.backends.triton.emit", emit)
    yield
    plugins.pass_class.cache_clear()
    driver.forget()


def compiled(**options: Any) -> TileKernel:
    kernel = sc.compile(TEXT, A=A, x=x, target="sm_90", **options)
    assert isinstance(kernel, TileKernel)
    return kernel


def test_every_stage_is_text() -> None:
    kernel = compiled()
    wanted = {
        "tensor": "linalg.generic", "selected": "linalg.generic", "iteration": "iteration.iterate",
        "tiles": "tile.kernel", "triton": "@triton.jit", "ptx": ".target sm_90a", "sass": "EXIT",
    }  # fmt: skip
    assert tuple(wanted) == gpu_flow.FLOW.stages
    for stage, text in wanted.items():
        assert text in kernel.texts(stage), stage
    assert kernel.source == kernel.texts("triton")
    assert kernel.asm("ptx") == kernel.texts("ptx")
    assert kernel.ir("tiles") == kernel.texts("tiles")
    with pytest.raises(SparseccError, match="no stage 'llvm' for target sm_90"):
        kernel.ir("llvm")


def test_asked_like_any_kernel() -> None:
    kernel = compiled()
    assert kernel.formats == {"A": "CSR", "x": "dense", "y": "dense"}
    assert "kernel k0" in kernel.explain()
    assert "2:" not in kernel.explain()
    assert list(kernel.resources) == ["k0"]
    assert {"frontend", "sparsify", "emit"} <= kernel.times.keys()


def test_interpreted_from_an_expression() -> None:
    y = compiled(interpret=True)(A=sc.asarray(ROWS).to("CSR@i32/i32"), x=X)
    assert type(y) is np.ndarray and np.array_equal(y, ROWS @ X)
    matrix, vector = sc.asarray(ROWS).to("CSR@i32/i32"), X
    kernel = sc.compile(TEXT, A=matrix, x=vector, target="gpu", interpret=True)
    assert np.array_equal(kernel(A=matrix, x=vector), ROWS @ X)


def test_torch_tensors_say_what_to_compile_for(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = pytest.importorskip("torch")
    monkeypatch.setenv("SPARSECC_INTERPRET", "1")
    matrix = torch.from_numpy(ROWS).to_sparse_csr()
    narrow = torch.sparse_csr_tensor(
        matrix.crow_indices().int(), matrix.col_indices().int(), matrix.values(), size=(3, 4)
    )
    y = sc.evaluate(TEXT, A=narrow, x=torch.from_numpy(X), target="sm_90")
    assert np.array_equal(y.numpy(), ROWS @ X)
    kernel = sc.compile(TEXT, A=matrix, x=torch.from_numpy(X), target="sm_90")
    assert kernel.plan.operands[0].format.endswith("compressed)@i64/i64")


def test_options_of_the_request_reach_the_passes_that_know_them() -> None:
    request = driver.Request("expression", TEXT, target="sm_90", tokens=16)
    passes = gpu_flow.FLOW.passes(request)
    assert passes["tiles"] == [("mark-tiles", {"tokens": "16"})]
    assert passes["selected"][0] == ("generalize-named-ops", {})


def test_another_schedule() -> None:
    kernel = compiled()
    first, *_, last = kernel.plan.tiles[0].space
    assert kernel.plan.tiles[0].schedule == first == '#tile.schedule<"loops", {rows = 4}>'
    other = compiled(schedule=last)
    assert other.plan.tiles[0].schedule == last
    assert other.source.startswith(f"# {last}")
    assert compiled(schedule={"k0": last}).plan == other.plan
    # One that the pass can make, though it is not in the space, is made too.
    wide = '#tile.schedule<"loops", {rows = 16}>'
    assert compiled(schedule=wide).plan.tiles[0].schedule == wide
    for schedule, text in (
        ("fast", "'fast' is no schedule"),
        ('#tile.schedule<"ring", {rows = 4}>', 'k0 has no schedule #tile.schedule<"ring"'),
        ({"k7": last}, "no GPU kernel 'k7'"),
    ):
        with pytest.raises(SparseccError, match=text):
            compiled(schedule=schedule)


def test_plans_come_from_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSECC_CACHE", str(tmp_path))
    first = compiled()
    driver.forget()
    second = compiled()
    assert "cache" in second.times and "emit" not in second.times
    assert second.plan == first.plan


Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100", "sm_86"])
@pytest.mark.parametrize("stage", ["tiles", "triton", "ptx", "sass"])
def test_compile_on_the_command_line(
    target: str, stage: str, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "out"
    arguments = ["compile", TEXT, "--format", "A=CSR", "--dtype", "f32", "--target", target]
    assert main([*arguments, "--emit", stage, "-o", str(path)]) == 0, capsys.readouterr().err
    number = {"sm_86": "80"}.get(target, target[3:])
    wanted = {
        "tiles": "tile.kernel", "triton": f"for sm_{number}", "ptx": rf"\.target sm_{number}", "sass": f"sm_?{number}",
    }  # fmt: skip
    assert re.search(wanted[stage], path.read_text(), re.IGNORECASE)


def test_more_of_the_command_line(capsys: Capture, tmp_path: Path) -> None:
    arguments = [TEXT, "--format", "A=CSR", "--dtype", "f32", "--target", "sm_90"]
    assert main(["compile", *arguments]) == 0
    assert "@triton.jit" in capsys.readouterr().out
    assert main(["explain", *arguments]) == 0
    assert "code: blocks for sm_90" in capsys.readouterr().out
    assert main(["compile", *arguments, "--emit", "llvm"]) == 2
    assert "--emit llvm is for the target cpu" in capsys.readouterr().err
    sc.asarray(ROWS).save(tmp_path / "A.mtx")
    np.save(tmp_path / "x.npy", X)
    files = [f"A={tmp_path}/A.mtx:CSR", f"x={tmp_path}/x.npy", "--dtype", "f32"]
    out = tmp_path / "y.npy"
    command = ["run", TEXT, *files, "--target", "sm_90", "-o", str(out)]
    assert main([*command, "--interpret"]) == 0, capsys.readouterr().err
    assert np.array_equal(np.load(out), ROWS @ X)
    assert main(command) == 1
    assert "there is no GPU here" in capsys.readouterr().err
