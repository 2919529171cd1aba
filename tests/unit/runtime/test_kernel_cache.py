"""The disk cache: hits, damage, folders that can't be written, and its bound."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import sparsecc as sc
from sparsecc import driver
from sparsecc.runtime import kernel_cache
from sparsecc.runtime.compiled_kernel import Kernel

TEXT = "y[i] = 2 * A[i,j] * x[j]"
ROWS = np.array([[1.0, 0, 2], [0, 0, 3]])
X = np.array([1.0, 2, 3])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARSECC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def compiled() -> Kernel:
    """The kernel as a new process would get it; it computes the right thing."""
    driver.forget()
    a = sc.asarray(ROWS).to("CSR")
    kernel = sc.compile(TEXT, A=a, x=X)
    assert np.array_equal(kernel(A=a, x=X), 2 * ROWS @ X)
    return kernel


def test_the_second_time_comes_from_the_disk(folder: Path) -> None:
    first, second = compiled(), compiled()
    assert "llvm" in first.times and "cache" not in first.times
    assert "cache" in second.times and "llvm" not in second.times
    assert first.plan == second.plan
    assert len(list(folder.iterdir())) == 1
    assert "scf.for" in second.ir("loops") and "k0" in second.source


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "text", "header"])
def test_a_damaged_entry_is_compiled_anew(folder: Path, damage: str) -> None:
    compiled()
    (entry,) = folder.iterdir()
    data = entry.read_bytes()
    bad = {
        "truncate": data[: len(data) // 2],
        "flip": data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
        "empty": b"",
        "text": b"nothing of the kind",
        "header": data.replace(b'"dense"', b'"dance"'),
    }[damage]
    entry.write_bytes(bad)
    assert "llvm" in compiled().times
    assert "cache" in compiled().times


def test_a_folder_that_is_a_file_is_no_error(folder: Path) -> None:
    folder.write_text("in the way")
    assert "llvm" in compiled().times


def test_the_cache_can_be_switched_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSECC_CACHE", "")
    compiled()
    assert not folder.exists()


def test_old_entries_make_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache, "MAX_ENTRIES", 8)
    folder.mkdir()
    for number in range(9):
        path = folder / f"old{number}.kernel"
        path.write_bytes(b"")
        os.utime(path, (number, number))
    compiled()
    names = sorted(p.name for p in folder.iterdir())
    assert len(names) == 6 and "old8.kernel" in names and "old0.kernel" not in names
