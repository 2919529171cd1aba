"""Writing a file so that it appears whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from sparsecc.storage.files.errors import UnwritableFile

OPEN_FILES = ("/dev/std", "/dev/fd/", "/proc/")
"""Where names stand for files that are open: writing goes through them, never around."""


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file beside its place and rename it; devices and pipes are written to as they are,
    and of a symbolic link the file that it points to is replaced. Raises UnwritableFile."""
    try:
        if _is_special(path):
            with open(path, "wb") as file:
                file.write(content)
        else:
            _replace(Path(os.path.realpath(path)), content)
    except (OSError, ValueError) as error:  # ValueError: a path that no file can have
        reason = getattr(error, "strerror", None) or str(error)
        raise UnwritableFile(reason=reason, place=str(path)) from None


def _is_special(path: str | os.PathLike[str]) -> bool:
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(mode) or os.fspath(path).startswith(OPEN_FILES)


def _replace(target: Path, content: bytes) -> None:
    handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:200]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        # mkstemp's files are for their owner alone; this one gets what open() would give.
        os.chmod(beside, 0o666 & ~_umask())
        os.replace(beside, target)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
