"""Tables of sparse rows: every entry and every row is in them once, in the order that programs want."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import sparsecc as sc
from sparsecc.backends.triton.operands import pack_bins, pack_entries, pack_segments, row_tables_of
from sparsecc.backends.triton.packing.rows import NoSparseRows, TooManyEntries
from sparsecc.formats.row_tables import BINS, GROUP, LAYOUTS, PART, ROOM, SEGMENT, long_part
from sparsecc.storage import limits

torch: Any = import_module("torch")  # its types are incomplete
LENGTHS: dict[str, list[int]] = {
    "none": [],
    "empty rows": [0, 0, 0],
    "uniform": [7, 8, 9, 8] * 5,
    "a hub": [3, 0, 5000, 2, 1, 0, 40, 130, 129, 128, 33, 32, 5, 4],
    "one entry": [1],
    "whole parts": [PART, 2 * PART, PART + 1, 6 * PART],
}


def positions(lengths: list[int]) -> Any:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int32)


def check_segments(table: Any, lengths: list[int], rows: list[int], part: int, slots: int) -> None:
    """Segments of rows: their entries once each, parts of like lengths, slots that nobody shares."""
    p = positions(lengths)
    taken: list[int] = []
    for row in rows:
        mine = sorted((s for s in table if s[0] == row), key=lambda s: s[5])
        assert [s[5] for s in mine] == list(range(len(mine)))
        assert mine[0][1] == p[row] and mine[-1][2] == p[row + 1]
        assert all(a[2] == b[1] for a, b in zip(mine, mine[1:], strict=False))
        sizes = [s[2] - s[1] for s in mine]
        assert max(sizes) <= part and max(sizes) - min(sizes) <= 1
        assert {s[3] for s in mine} == {len(mine)} == {max(1, -(-lengths[row] // part))}
        if len(mine) > 1:
            assert len({s[4] for s in mine}) == 1
            taken += [s[4] + s[5] for s in mine]
    assert len(table) == sum(max(1, -(-lengths[r] // part)) for r in rows)
    assert sorted(taken) == list(range(slots))


@pytest.mark.parametrize("name", LENGTHS)
def test_segments(name: str) -> None:
    lengths = LENGTHS[name]
    arrays, facts = row_tables_of("CSR-segments", positions(lengths))
    table = arrays["segments"]
    assert table.dtype == np.int32 and table.shape == (facts["segment_count"], SEGMENT)
    check_segments(table.tolist(), lengths, list(range(len(lengths))), PART, facts["slot_count"])
    sizes = (table[:, 2] - table[:, 1]).tolist()
    assert sizes == sorted(sizes, reverse=True)
    assert facts["longest"] == max(lengths, default=0)
    assert facts["mean"] == -(-sum(lengths) // max(1, len(lengths)))


@pytest.mark.parametrize("name", LENGTHS)
def test_sweeps(name: str) -> None:
    """The same segments; among like lengths, what begins early in its row comes first."""
    lengths = LENGTHS[name]
    arrays, _ = row_tables_of("CSR-segments", positions(lengths))
    table: list[list[int]] = arrays["sweeps"].tolist()
    assert sorted(table) == sorted(arrays["segments"].tolist())
    keys = [(-max(0, hi - lo - 1).bit_length(), at / of) for _, lo, hi, of, _, at in table]
    assert keys == sorted(keys)


def test_side_by_side_parts_begin_alike() -> None:
    rows = [4 * PART - k % 3 for k in range(6)]
    arrays, _ = row_tables_of("CSR-segments", positions(rows))
    assert arrays["sweeps"][:, 5].tolist() == [0] * 6 + [1] * 6 + [2] * 6 + [3] * 6


@pytest.mark.parametrize("name", LENGTHS)
def test_bins(name: str) -> None:
    lengths = LENGTHS[name]
    arrays, facts = row_tables_of("CSR-bins", positions(lengths))
    groups, order = arrays["groups"], list[int](arrays["order"].tolist())
    assert groups.shape == (facts["group_count"], GROUP)
    assert sorted(order) == list(range(len(lengths)))
    long = [r for r in order if lengths[r] > BINS[0][0]]
    segments = arrays["long_segments"].tolist()
    part = long_part(sum(lengths), facts["mean"])
    check_segments(segments, lengths, long, part, facts["long_slot_count"])
    assert facts["long_count"] == len(segments)
    assert [kind for kind, _, _ in groups.tolist()[: len(segments)]] == [0] * len(segments)
    done = set[int](long)
    numbers: list[int] = []
    rows_of: list[list[int]] = groups.tolist()
    for kind, begin, end in rows_of:
        if kind == 0:
            assert end == begin + 1
            numbers.append(begin)
            continue
        rows = order[begin:end]
        most, height, _ = BINS[kind - 1]
        least: int = (*(cut for cut, _, _ in BINS), -1)[kind]
        assert 0 < len(rows) <= height and not done & set(rows)
        assert all(least < lengths[r] <= most for r in rows)
        done |= set(rows)
    assert done == set(range(len(lengths))) and numbers == list(range(len(segments)))


@pytest.mark.parametrize(
    ("entries", "mean", "expected"),
    [
        (0, 0, 1024), (270_000, 17, 1024), (2_700_000, 163, 1024), (10_000_000, 600, 2048),
        (2_700_000, 1638, 2048), (21_500_000, 1312, 4096), (1 << 30, 1 << 20, 4096),
    ],
)  # fmt: skip
def test_parts_of_long_rows(entries: int, mean: int, expected: int) -> None:
    assert long_part(entries, mean) == expected


@pytest.mark.parametrize("name", LENGTHS)
def test_entries(name: str) -> None:
    lengths = LENGTHS[name]
    arrays, facts = row_tables_of("CSR-entries", positions(lengths))
    assert arrays["rows"].tolist() == np.repeat(np.arange(len(lengths)), lengths).tolist()
    assert facts["entry_count"] == sum(lengths)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("width", [torch.int32, torch.int64])
def test_torch_makes_the_same_tables(layout: str, width: Any) -> None:
    p = positions(LENGTHS["a hub"])
    arrays, facts = row_tables_of(layout, p)
    others, same = row_tables_of(layout, torch.from_numpy(p).to(width))
    assert same == facts and others.keys() == arrays.keys()
    for role, array in others.items():
        assert array.dtype == torch.int32 and array.numpy().tolist() == arrays[role].tolist()


def test_arrays_stay_where_they_are() -> None:
    matrix = torch.eye(4).to_sparse_csr()
    packed = pack_entries(matrix)
    assert packed.arrays["values"].data_ptr() == matrix.values().data_ptr()
    assert packed.arrays["coordinates1"].data_ptr() == matrix.col_indices().data_ptr()
    assert packed.layout == "CSR-entries" and packed.shape == (4, 4) and packed.dtype == "f32"
    by_columns = pack_bins(sc.asarray(np.eye(3, 5)).to("CSC"))
    assert by_columns.arrays["order"].shape == (5,)


@pytest.mark.parametrize("matrix", [np.eye(3), torch.eye(3), sc.asarray(np.eye(3)).to("COO")])
def test_what_has_no_sparse_rows(matrix: Any) -> None:
    with pytest.raises(NoSparseRows, match="made of a matrix in CSR or CSC"):
        pack_segments(matrix)


def test_more_entries_than_tables_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "INT32_MAX", ROOM + 5)
    with pytest.raises(TooManyEntries, match="6 entries has more than the 5"):
        row_tables_of("CSR-segments", positions([3, 3]))
