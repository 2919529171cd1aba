"""Where files are written to: regular files whole, links kept, devices and pipes as they are."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import numpy as np
import pytest

from sparsecc.diagnostics import FileError
from sparsecc.storage.files import read, write
from sparsecc.storage.files.whole import write_whole
from sparsecc.storage.ingest import asarray

EYE = asarray(np.eye(2))


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "a.npy", tmp_path / "there" / "b.npy"
    link.symlink_to(target)
    for factor in (1.0, 2.0):  # a link to nothing, then to a file
        write(asarray(np.eye(2) * factor), link)
        assert link.is_symlink() and not target.is_symlink()
        assert np.array_equal(read(target).to_numpy(), np.eye(2) * factor)
    assert [p.name for p in (tmp_path / "there").iterdir()] == ["b.npy"]


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "a.npy"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write(EYE, pipe)
    reader.join(10)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert got[0].startswith(b"\x93NUMPY")
    assert [p.name for p in tmp_path.iterdir()] == ["a.npy"]


def test_a_device_stays_one(tmp_path: Path) -> None:
    write_whole(os.devnull, b"nothing")
    (tmp_path / "null.npy").symlink_to(os.devnull)
    write(EYE, tmp_path / "null.npy")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert (tmp_path / "null.npy").is_symlink()


def test_messages_name_the_path_that_was_given(tmp_path: Path) -> None:
    (tmp_path / "d.npy").mkdir()
    (tmp_path / "loop.npy").symlink_to(tmp_path / "loop.npy")
    for name in ("d.npy", "loop.npy", "absent/a.npy", "a" * 300 + ".npy"):
        with pytest.raises(FileError, match="can't be written") as caught:
            write(EYE, tmp_path / name)
        assert caught.value.place == str(tmp_path / name)
        assert str(caught.value).count(str(tmp_path)) == 1
