"""Folders of files as problems: ``.mtx`` (``.gz``), ``.smtx`` of the Deep Learning Matrix Collection, ``.tns``.

All files are read before anything is measured, and all that is wrong with any is told at once: a corpus of which part
is left out without a word would be another one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from math import prod
from pathlib import Path

from sparsecc.diagnostics import ErrorCollector, FileError, SparseccError, UsageError
from sparsecc.formats import known_name
from sparsecc.research.corpus import CorpusProblem, problem_of
from sparsecc.research.operations import OPERATIONS
from sparsecc.research.smtx import read_smtx
from sparsecc.storage import files
from sparsecc.storage.tensor import SparseTensor

SUFFIXES = (".mtx", ".mtx.gz", ".smtx", ".tns")
COLUMNS = (1, 8, 32, 128)
FACTORS = (8, 32)


class NoFiles(UsageError):
    text = "folder {folder} holds no {suffixes} files"
    help_text = "name a folder with matrices, a table, or a corpus that is built in"


class Unusable(FileError):
    """A file that is well-formed and that no problem can be made of."""

    text = "{problem}"
    help_text = "take it out of the folder"


@dataclass(frozen=True)
class Loaded:
    """A file that was read: what a problem says of it without its entries."""

    name: str
    shape: tuple[int, ...]
    stored: str
    digest: str
    load: Callable[[], SparseTensor]


def read(path: Path) -> SparseTensor:
    """The tensor of a file; the values of a pattern are drawn. Raises FileError."""
    if path.name.lower().endswith(".smtx"):
        return read_smtx(path).tensor("f32")
    made = files.read(path)
    return made if made.format.is_dense else made.to("CSR" if made.rank == 2 else made.format)


def load(folder: Path) -> list[Loaded]:
    """All files of a folder and of those within, by name. Raises NoFiles, and FileError with all that is wrong."""
    paths = sorted(
        path for path in folder.rglob("*")
        if path.name.lower().endswith(SUFFIXES)
    )  # fmt: skip
    if not paths:
        raise NoFiles(folder=folder, suffixes=" ".join(SUFFIXES))
    errors = ErrorCollector()
    found: list[Loaded] = []
    for path in paths:
        try:
            if not path.is_file():
                kind = (
                    "a folder"
                    if path.is_dir()
                    else "a link to nothing"
                    if path.is_symlink()
                    else "no file"
                )
                raise Unusable(problem=f"it is {kind}", place=str(path))
            found.append(_loaded(path, folder))
        except SparseccError as error:
            errors.add(error if error.place else Unusable(problem=error.message, place=str(path)))
    errors.raise_if_any()
    return found


def _loaded(path: Path, folder: Path) -> Loaded:
    made = read(path)
    problem = ""
    if made.rank not in (2, 3):
        problem = f"no operation takes a tensor of {made.rank} dimensions"
    elif made.dtype.kind == "c":
        problem = "its entries are complex"
    elif not prod(made.shape) or not made.nnz:
        problem = "it has no entries"
    if problem:
        raise Unusable(problem=problem, place=str(path))
    digest = sha256(path.read_bytes()).hexdigest()[:16]
    name = path.relative_to(folder).as_posix()
    return Loaded(name, made.shape, known_name(made.format), digest, partial(read, path))


def problems(
    folder: Path,
    target: str,
    dtypes: Sequence[str] = ("f32",),
    columns: Sequence[int] = COLUMNS,
    factors: Sequence[int] = FACTORS,
) -> tuple[CorpusProblem, ...]:
    """SpMV and SpMM of each matrix, MTTKRP of each tensor of three dimensions. Families are the folders within.

    Raises NoFiles, FileError."""
    found: list[CorpusProblem] = []
    for file in load(folder):
        for dtype in dtypes:
            if len(file.shape) == 3:
                found += [_problem(file, "MTTKRP", n, target, dtype) for n in factors]
                continue
            found.append(_problem(file, "SpMV", None, target, dtype))
            found += [_problem(file, "SpMM", n, target, dtype) for n in columns]
    return tuple(found)


def _problem(
    file: Loaded, operation: str, width: int | None, target: str, dtype: str
) -> CorpusProblem:
    family = file.name.rpartition("/")[0] or "files"
    return problem_of(
        OPERATIONS[operation], file.shape, width, title=file.name, target=target, dtype=dtype,
        stored=file.stored, family=family, pattern={"file": file.name, "digest": file.digest}, load=file.load,
    )  # fmt: skip
