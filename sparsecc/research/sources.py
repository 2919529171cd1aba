"""Which table a corpus and a target mean."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from sparsecc.diagnostics import UsageError, did_you_mean
from sparsecc.elements import NUMPY
from sparsecc.research import loaders
from sparsecc.research.corpus import CORPORA, CorpusProblem, problems
from sparsecc.research.table import DATA, ENDINGS, Table, names, read_table

BUILTIN = "builtin"


class NothingRecorded(UsageError):
    text = "nothing is recorded of {corpus!r} for {target}"
    help_text = "measure it here with --measure, or name a table: {known}"


class UnknownType(UsageError):
    text = "there is no type {name!r}"


class OtherTarget(UsageError):
    text = "table {table!r} is of {found}, not of {wanted}"
    help_text = "pass --target {found}, or see 'sparsecc research transfer'"


def is_folder(corpus: str) -> bool:
    """Whether a corpus is a folder of files, and not a table or a name."""
    return corpus != BUILTIN and corpus not in CORPORA and Path(corpus).is_dir()


def problems_of(corpus: str, target: str, dtypes: Sequence[str] = ()) -> tuple[CorpusProblem, ...]:
    """The problems that are to be measured: of a built-in corpus (``builtin``: that of the target), or of a folder.

    Raises UnknownCorpus, UnknownType, NoFiles, FileError."""
    cpu = target == "cpu"
    for name in dtypes:
        if name not in tuple(NUMPY):
            raise UnknownType(name=name, help=did_you_mean(name, list(NUMPY)))
    if is_folder(corpus):
        return loaders.problems(Path(corpus), target, dtypes or ("f32" if cpu else "f16",))
    return problems(("cpu" if cpu else "gpu") if corpus == BUILTIN else corpus)


def shipped() -> dict[str, list[str]]:
    """The tables that ship, by target."""
    found: dict[str, list[str]] = {}
    for name in names():
        meta = json.loads((DATA / f"{name}{ENDINGS[0]}").read_text(encoding="utf-8"))
        found.setdefault(str(meta["target"]), []).append(name)
    return found


def table_for(corpus: str, target: str) -> Table:
    """The recorded table of a corpus: ``builtin`` is the one that ships for the target, the first by name if several
    do; else a name or a path. Raises NothingRecorded, UnknownTable, OtherTarget, BadRecords."""
    known = shipped()
    if corpus == BUILTIN or (corpus in CORPORA and corpus not in names()):
        if target not in known:
            shown = ", ".join(sorted(known)) or "none ships"
            raise NothingRecorded(corpus=corpus, target=target, known=shown)
        return read_table(known[target][0])
    if is_folder(corpus):
        shown = did_you_mean(corpus, names()) if names() else "none ships"
        raise NothingRecorded(corpus=corpus, target=target, known=shown)
    found = read_table(corpus)
    if found.target != target:
        raise OtherTarget(table=corpus, found=found.target, wanted=target)
    return found
