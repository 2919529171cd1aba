"""docs/walk.md is what the compiler prints: generated here and compared (``make docs`` writes)."""

from __future__ import annotations

import re
from pathlib import Path

import sparsecc as sc
from tests.conftest import Golden

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "walk.md"

STAGES = {
    # stage: the files that make it, and what it says
    "tensor": (
        ["sparsecc/frontends/module_builder.py"],
        "what is computed, on tensors whose types name their storage",
    ),
    "selected": (
        ["passes/selection/select_formats.py", "passes/sparsification/schedule_loops.py"],
        "formats, the order of loops, how the result is put together",
    ),
    "iteration": (
        ["passes/sparsification/sparsify.py"],
        "which levels are walked together, and when a coordinate is visited",
    ),
    "loops": (
        ["passes/sparsification/lower_iteration.py"],
        "loops over positions, coordinates and values in memory",
    ),
    "llvm": (["backends/cpu/emit.py"], "the same loops for LLVM"),
    "c": (["backends/cpu/emit_c.py"], "the same loops for readers"),
}

HEAD = """\
# A walk through the house

Three programs on their way from an expression to code. Every block below is what the compiler
printed; `tests/test_walk.py` writes this page (`make docs`) and fails if it is not up to date. See
it for a program of your own with `sparsecc compile EXPRESSION --emit STAGE`.

| stage | made by | what it says |
|---|---|---|
{rows}

`sparsecc/driver.py` runs them in that order, on one screen.
"""

PROSE = {
    "tensor": """\
The frontend parses the expression, checks it and writes one `linalg.generic` for it. How `A` is
stored is part of its type: the encoding spells its levels.""",
    "selected": """\
Formats and widths are settled. The attributes at the end of the generic hold the order of loops
and the way in which the result is assembled.""",
    "iteration": """\
The generic has become a kernel and a launch of it. A cursor (`%a1`, `%a2`) is a node in a tensor's
tree of levels: `locate` goes down one level at a known coordinate, `iterate` visits those that are
stored.""",
    "loops": """\
Cursors are positions now: a compressed level is a range of positions and an array of coordinates.
Nothing here knows of tensors any more.""",
    "llvm": "One structured walk writes LLVM's text, here before any optimisation.",
    "c": """\
The walk again, as C99 for reading: `kernel.source`. It computes the same, which
`tests/unit/backends/test_emit_c.py` checks by compiling it.""",
}

NOTES: dict[tuple[str, str], str] = {
    ("union", "iteration"): """\
The union of two rows is three loops of the merge lattice. In the first both rows last, and a
coordinate is visited if it is in `{0}` or in `{1}`, that is, in either; then one row is left, or
the other.""",
    ("product", "selected"): """\
`i, k, j` goes along the rows of both matrices. Entries of a row of `C` come unordered and
repeated, so it is assembled in a `workspace`.""",
    ("product", "iteration"): """\
`workspace` collects a row of `C` in a dense array, with a list of what was touched.
`iteration.counted`: nobody knows beforehand how many entries `C` has.""",
    ("product", "loops"): """\
So there are two functions: `k0_count` finds how much is stored, the caller allocates that, and
`k0` stores it. Here is the second.""",
}

MATRIX, VECTOR = sc.Spec((None, None), "f64", "CSR"), sc.Spec((None,), "f64")
PROGRAMS = {
    "spmv": (
        "A matrix times a vector",
        "y[i] = A[i,j] * x[j]",
        {"A": MATRIX, "x": VECTOR},
        "dense",
    ),
    "union": (
        "The sum of two matrices",
        "C[i,j] = A[i,j] + B[i,j]",
        {"A": MATRIX, "B": MATRIX},
        "CSR",
    ),
    "product": (
        "A sparse matrix times a sparse matrix",
        "C[i,j] = A[i,k] * B[k,j]",
        {"A": MATRIX, "B": MATRIX},
        "CSR",
    ),
}
LANGUAGE = {"llvm": "llvm", "c": "c"}


def only(text: str, start: str, end: str) -> str:
    """The part of a text from a line that matches to the first that ends it."""
    found = re.search(rf"^{start}.*?^{end}\n", text, re.MULTILINE | re.DOTALL)
    assert found is not None, start
    return found[0]


def block(name: str, stage: str, text: str) -> str:
    """A stage's text, cut to the function that the prose is about where it is long."""
    if stage in ("tensor", "selected", "iteration"):
        return text.partition("\n")[2]
    if stage == "loops":
        return only(text, r"  func\.func @k0\(", "  }")
    if stage == "llvm":
        return only(text, r"define internal void @k0\(", "}")
    return only(text, r"static void k0\(", "}")


def page() -> str:
    rows = [
        f"| `{stage}` | {', '.join(f'`{file}`' for file in files)} | {what} |"
        for stage, (files, what) in STAGES.items()
    ]
    parts = [HEAD.format(rows="\n".join(rows))]
    for name, (title, text, operands, out) in PROGRAMS.items():
        parts.append(f"\n## {title}\n\n`{text}`, all matrices in CSR.\n")
        kernel = sc.compile(text, out=out, operands=operands)
        for stage, prose in PROSE.items():
            note = NOTES.get((name, stage))
            parts.append(f"\n### `{stage}`\n\n{prose if name == 'spmv' else note or ''}\n")
            shown = block(name, stage, kernel.texts(stage)).strip("\n")
            parts.append(f"\n```{LANGUAGE.get(stage, 'mlir')}\n{shown}\n```\n")
    return re.sub(r"\n{3,}", "\n\n", "".join(parts))


def test_walk_is_up_to_date(golden: Golden) -> None:
    golden(PAGE, page())


def test_the_page_names_files_that_exist() -> None:
    named = [file for files, _ in STAGES.values() for file in files]
    named += re.findall(r"`((?:sparsecc|tests)/[\w./]+)`", HEAD + "".join(PROSE.values()))
    assert len(named) == 10
    assert not [name for name in named if not (ROOT / name).exists()]
