"""Machine code of GPU kernels on disk: files that run by hand, hits without Triton, damage, the bound."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sparsecc.backends.triton import load
from sparsecc.kernel import Compiled, TileSource
from sparsecc.runtime import tile_cache
from tests.unit.backends.triton.kernels import COPY, SPMV


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARSECC_CACHE", str(tmp_path))
    monkeypatch.setattr(tile_cache, "_kept", {})
    return tmp_path / "gpu"


def refuse(source: TileSource, target: str) -> Compiled:
    raise AssertionError("compiled again")


def test_an_entry_is_a_module_and_its_machine_code(folder: Path) -> None:
    made = tile_cache.compiled(COPY, "sm_90")
    name = tile_cache.entry_name(COPY, "sm_90")
    assert sorted(path.name for path in folder.iterdir()) == [
        f"{name}{suffix}" for suffix in (".cubin", ".json", ".ptx", ".py")
    ]
    path = tile_cache.path_of(COPY, "sm_90")
    assert path is not None and name.isidentifier()
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.grid(100) == (2, 1, 1)
    assert json.loads((folder / f"{name}.json").read_text())["registers"] == made.registers


def test_the_second_time_comes_from_the_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [tile_cache.compiled(COPY, "sm_90"), tile_cache.compiled(SPMV, "sm_80")]
    monkeypatch.setattr(load, "compile_source", refuse)
    tile_cache._kept.clear()  # pyright: ignore[reportPrivateUsage]  # as a new process would begin
    found = [tile_cache.compiled(COPY, "sm_90"), tile_cache.compiled(SPMV, "sm_80")]
    assert found == made
    with pytest.raises(AssertionError, match="compiled again"):
        tile_cache.compiled(SPMV, "sm_90")


def test_a_hit_needs_no_triton(folder: Path) -> None:
    tile_cache.compiled(SPMV, "sm_90")
    code = """
import sys
from sparsecc.runtime import tile_cache
from tests.unit.backends.triton.kernels import SPMV
assert tile_cache.compiled(SPMV, "sm_90").registers
print([m for m in ("triton", "torch", "xdsl", "llvmlite") if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


@pytest.mark.parametrize("suffix", [".py", ".cubin", ".ptx", ".json"])
@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_damage_is_compiled_anew(suffix: str, damage: str, folder: Path) -> None:
    made = tile_cache.compiled(SPMV, "sm_90")
    path = folder / (tile_cache.entry_name(SPMV, "sm_90") + suffix)
    data = path.read_bytes()
    if damage == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "changed":
        path.write_bytes(data.replace(b"2", b"3"))
    else:
        path.unlink()
    assert tile_cache.read(SPMV, "sm_90") is None
    tile_cache.write(made)
    assert tile_cache.read(SPMV, "sm_90") == made


def test_the_name_says_all_that_the_code_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [
        tile_cache.entry_name(replace(SPMV, **{key: value}), "sm_90")
        for key, value in {
            "text": SPMV.text + " ",
            "warps": 2,
            "aligned": (),
            "registers": 64,
        }.items()
    ]
    names = [tile_cache.entry_name(SPMV, target) for target in ("sm_80", "sm_90")]
    monkeypatch.setattr(tile_cache, "compiler_version", lambda: "triton 99")
    names += [tile_cache.entry_name(SPMV, "sm_90"), *others]
    assert len(set(names)) == len(names)


def test_the_folder_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = load.compile_source(SPMV, "sm_90")
    monkeypatch.setattr(tile_cache, "MAX_ENTRIES", 4)
    for n in range(6):
        tile_cache.write(replace(made, source=replace(SPMV, text=f"{SPMV.text}# {n}\n")))
    assert len(list(folder.glob("*.json"))) <= 4
    assert len(list(folder.iterdir())) == 4 * len(list(folder.glob("*.json")))


def test_without_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tile_cache, "_kept", {})
    monkeypatch.setenv("SPARSECC_CACHE", "")
    assert tile_cache.compiled(SPMV, "sm_90").registers
    assert tile_cache.path_of(SPMV, "sm_90") is None
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPARSECC_CACHE", str(tmp_path / "file"))
    tile_cache.write(tile_cache.compiled(SPMV, "sm_90"))  # can't be written: no error
