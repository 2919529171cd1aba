"""Statistics of a sample of the slices against those of all entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from storage_samples import sample, tiles

from sparsecc.storage import samples, statistics
from sparsecc.storage.ingest import asarray, from_coords

Array = npt.NDArray[Any]


def patterns() -> dict[str, Array]:
    rng = np.random.default_rng(11)
    iid = rng.random((4000, 500)) < 0.05
    skewed = rng.random((4000, 500)) < (1 / np.arange(1, 4001) ** 0.7)[:, None]
    heavy = np.zeros((4000, 500), np.bool_)
    heavy[1234:1240] = True
    few_heavy = iid & (rng.random((4000, 1)) < 0.1)
    few_heavy[3000:3003] = True
    blocks = np.kron(rng.random((500, 63)) < 0.05, np.ones((8, 8), np.bool_))
    return {"iid": iid, "skewed": skewed, "heavy": heavy, "few": few_heavy, "blocks": blocks}


@pytest.mark.parametrize("name", patterns())
@pytest.mark.parametrize("format", ["CSR", "CSC", "COO", "BSR(4,4)", "dense"])
def test_estimates(name: str, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a fifth of the entries: within 6 % in counts of blocks, 2 % in groups that fit."""
    monkeypatch.setattr(statistics, "DENSE_CELLS", 1)
    monkeypatch.setattr(statistics, "LEAST_SHARE", 64)
    dense = patterns()[name]
    tensor = asarray(dense.astype(np.float64)).to(format)
    size = dense.size if format == "dense" else int(np.count_nonzero(dense))
    whole = statistics.statistics(tensor, most_entries=None)
    found = statistics.statistics(tensor, most_entries=2 * size // 5)
    assert whole.exact
    # All entries may stand in a single panel, of which an array is never given in parts.
    assert not found.exact or (name, format) == ("heavy", "dense")
    counted = ("nnz", "slices", "prefixes", "below", "above", "diagonals", "distance")
    assert [getattr(found, c) for c in counted] == [getattr(whole, c) for c in counted]
    for b, w in zip(found.blocks, whole.blocks, strict=True):
        assert b.count == pytest.approx(w.count, rel=0.06)
        assert b.fill == pytest.approx(w.fill, rel=0.06)
    for g, w in zip(found.groups, whole.groups, strict=True):
        assert g.fitting == pytest.approx(w.fitting, abs=0.02)
        assert g.overflow == pytest.approx(w.overflow, rel=0.1, abs=0.002 * whole.nnz)
    assert found == statistics.statistics(tensor, most_entries=2 * size // 5), (
        "always the same sample"
    )


def test_what_a_sample_does_not_say_is_not_known() -> None:
    dense = np.ones((300, 300))
    tensor = asarray(dense).to("CSR")
    assert tensor.statistics().symmetry == "symmetric"
    assert statistics.statistics(tensor, most_entries=18000).symmetry == ""
    dense[0, 1] = 0
    tensor = asarray(dense).to("CSR")
    found = statistics.statistics(tensor, most_entries=18000)
    assert (found.symmetry, found.exact) == ("none", False), "rows and columns tell it apart"


def test_rows_that_are_longer_than_the_sample() -> None:
    dense = sample((64, 9000), density=0.5)
    tensor = asarray(dense).to("CSR")
    found = statistics.statistics(tensor, most_entries=10000)
    assert not found.exact
    for block in found.blocks:
        count = int(np.count_nonzero(tiles(dense != 0, block.rows, block.columns)))
        assert block.count == pytest.approx(count, rel=0.06)


def test_estimates_of_a_cube() -> None:
    rng = np.random.default_rng(5)
    coords = tuple(rng.integers(0, extent, 30000) for extent in (400, 50, 90))
    tensor = from_coords(coords, np.ones(30000), (400, 50, 90)).to("CSF")
    whole = statistics.statistics(tensor, most_entries=None)
    found = statistics.statistics(tensor, most_entries=12000)
    assert whole.exact and not found.exact
    assert (found.nnz, found.slices) == (whole.nnz, whole.slices)
    assert found.prefixes == pytest.approx(whole.prefixes, rel=0.05)
    assert found.pairs[:2] == pytest.approx(whole.pairs[:2], rel=0.05)
    assert found.pairs[2] == 0 and found.level_entries((2, 1, 0)) is None


def test_a_sample_has_something_of_every_class() -> None:
    used = np.arange(0, 10_000, 7)
    counts = np.ones(len(used), np.int64)
    counts[500] = 10**6
    drawn = samples.Sample.of(10_000, used, counts, 64, 0.1)
    assert drawn.chosen[used[500] // 64] and drawn.takes(used[500:501]).all()
    assert int(drawn.entries.sum()) == int(counts.sum())
    assert 10 <= np.count_nonzero(drawn.chosen) <= 30
