"""The set of cells, how parts of it are chosen, and the bars that cells are held to."""

from __future__ import annotations

from collections import Counter

import pytest

from sparsecc.bench import bars
from sparsecc.bench.cells import GROUPS, Cell, NoSuchCells, all_cells, quick, select

CELLS = all_cells()


def cell(text: str) -> Cell:
    (found,) = select(CELLS, [text])
    return found


def test_the_set() -> None:
    counts = Counter(c.group for c in CELLS)
    assert counts == {"2:4": 80, "unstructured": 64, "BSR": 36, "CSR": 64, "SpMV": 12, "SDDMM": 16}
    assert list(counts) == list(GROUPS)
    assert len({c.name for c in CELLS}) == len(CELLS)


def test_cells_of_one_matrix_follow_each_other() -> None:
    seen: list[object] = []
    for c in CELLS:
        if not seen or seen[-1] != c.matrix:
            seen.append(c.matrix)
    assert len(seen) == len(set(seen))


def test_select() -> None:
    assert select(CELLS, []) == CELLS
    assert {c.group for c in select(CELLS, ["BSR", "SpMV"])} == {"BSR", "SpMV"}
    found = select(CELLS, ["2:4 bf16 8"])
    assert {(c.dtype, c.width) for c in found} == {("bf16", 8)}
    assert len(found) == 5
    # 8 is a whole part of the name, not a digit of 28672.
    assert all(c.width != 128 for c in found)
    assert len(select(CELLS, ["28672x8192/4096"])) == 2
    with pytest.raises(NoSuchCells, match="no cell's name has 'COO' in it"):
        select(CELLS, ["2:4", "COO"])


def test_quick_has_each_group_and_is_small() -> None:
    few = quick(CELLS)
    assert {c.group for c in few} == set(GROUPS)
    assert len(few) < len(CELLS) / 10


def held(text: str) -> dict[str, float]:
    return {" or ".join(b.against): b.least for b in bars.of_cell(cell(text))}


@pytest.mark.parametrize(("text", "expected"), [
    ("2:4 f16 4096x4096 8", {"dense": 1.6, "cuSPARSELt": 1.0}),
    ("2:4 bf16 8192x8192 1", {"dense": 1.7, "cuSPARSELt": 1.0}),
    ("2:4 f16 4096x14336 16", {"dense": 1.5}),
    ("2:4 f16 4096x14336 32", {"dense": 1.4}),
    ("2:4 f16 4096x4096 128", {"dense": 1.0}),
    ("2:4 f16 4096x4096 4096", {}),
    ("2:4 f16 28672x8192 512", {"dense": 1.25}),
    ("unstructured iid 70% 14336x4096 16", {"dense": 1.3}),
    ("BSR BSR(16,16) 90% 64", {"torch BSR": 4.5, "dense": 1.45}),
    ("BSR BSR(64,64) 99% 512", {"torch BSR": 4.5}),
    ("CSR f32 rmat 99.9% 64", {"cuSPARSE": 1.2}),
    ("SpMV f32 rmat 99.9%", {"cuSPARSE": 1.0}),
    ("SDDMM f16 uniform 99% 64", {"cuSPARSE or torch": 1.5}),
])  # fmt: skip
def test_bars_of_a_cell(text: str, expected: dict[str, float]) -> None:
    assert held(text) == expected


def test_the_fastest_of_several_rivals_counts() -> None:
    bar = bars.Bar("", ("cuSPARSE", "torch"), 1.5, lambda _: True)
    assert bars.ratio(bar, 10.0, {"cuSPARSE": 30.0, "torch": 20.0}) == 2.0
    assert bars.ratio(bar, 10.0, {"torch": 20.0}) == 2.0
    assert bars.ratio(bar, 10.0, {}) is None
    assert bars.ratio(bar, None, {"torch": 20.0}) is None


def test_means() -> None:
    own = [c for c in CELLS if c.group == "2:4" and c.width == 16]
    times = {own[0]: (10.0, {"cuSPARSELt": 40.0}), own[1]: (10.0, {"cuSPARSELt": 10.0})}
    found = {m.bar.title: m for m in bars.means(own, times) if m.of}
    mean = found["2:4, M = 16"]
    assert mean.value == pytest.approx(2.0)
    assert (mean.cells, mean.of) == (2, 10)
