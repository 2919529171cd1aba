"""Patterns are what their families say, always the same, and bad specs are told apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparsecc.research import generator
from sparsecc.research.families import draw
from sparsecc.research.families.draw import PatternTooLarge, Saturated
from sparsecc.research.families.graphs import BadQuadrants
from sparsecc.research.families.matrices import BadChoice, BadStencil
from sparsecc.research.pattern import Pattern

Spec = dict[str, Any]


def spec(family: str, rows: int = 300, columns: int = 200, **rest: Any) -> Spec:
    return {"family": family, "rows": rows, "columns": columns, **rest}


SPECS: tuple[Spec, ...] = (
    spec("iid", density=0.3),
    spec("iid", density=0.03),
    spec("row-budget", count=5),
    spec("row-budget", count=50),
    spec("n:m", 64, 66, n=2, m=4),
    spec("v:n:m", 130, 66, v=32, n=2, m=8),
    spec("block", 100, 90, block=[8, 16], density=0.3, fill=0.5),
    spec("banded", 100, 90, below=2, above=3, fill=0.7),
    {"family": "stencil", "grid": [10, 12], "points": 5},
    {"family": "stencil", "grid": [10, 12], "points": 9},
    {"family": "stencil", "grid": [5, 6, 7], "points": 7},
    {"family": "stencil", "grid": [5, 6, 7], "points": 27},
    spec("rmat", 256, density=0.02),
    {"family": "preferential", "rows": 300, "edges": 4},
    spec("zipf-rows", 256, density=0.02),
    spec("magnitude", 256, density=0.4),
    spec("wanda", 256, density=0.4),
    {"family": "tensor-iid", "shape": [20, 30, 40], "entries": 500},
    {
        "family": "tensor-clustered", "shape": [20, 30, 40], "entries": 500, "clusters": 4,
        "spread": 3.0,
    },
    {"family": "tensor-power-law", "shape": [20, 30, 40], "entries": 500},
)  # fmt: skip
FINGERPRINTS = """
8331763f eb07ec42 56bd7f74 5347c524 c1e999a2 46dc9f43 b53abe2b 7709eb13 ca8f6c74 1847af7a
1e3bf19b b8e492cf b9150ead 1d05580b adc537fa d25d234b b7724308 cd3dfeaf 90f04df7 efdef58b
""".split()
NAMES = [f"{s['family']}-{k}" for k, s in enumerate(SPECS)]


def mask(made: Pattern) -> Any:
    return made.dense("f32") != 0


@pytest.mark.parametrize(
    ("fingerprint", "given"), list(zip(FINGERPRINTS, SPECS, strict=True)), ids=NAMES
)
def test_patterns_stay_what_they_are(fingerprint: str, given: Spec) -> None:
    # The tables of measured times name patterns by their specs alone.
    assert generator.pattern(given).fingerprint() == fingerprint
    if given["family"] != "stencil":
        assert generator.pattern(given | {"seed": 1}).fingerprint() != fingerprint


def test_threads_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    large = spec("iid", 3000, 3000, density=0.3), spec("zipf-rows", 9000, 9000, density=0.06)
    many = [generator.pattern(given).fingerprint() for given in large]
    assert many == ["a7daec51", "a0acefdd"]
    monkeypatch.setattr(draw, "THREADS", 1)
    assert [generator.pattern(given).fingerprint() for given in large] == many


def test_every_family_is_tested() -> None:
    assert {s["family"] for s in SPECS} == set(generator.FAMILIES)


@pytest.mark.parametrize("given", SPECS, ids=NAMES)
def test_tensors_are_their_patterns(given: Spec) -> None:
    made = generator.pattern(given)
    tensor = generator.tensor(given, "f32").check()
    assert tensor.nnz == made.nnz == len(made.coordinates()[0])
    assert np.array_equal(tensor.to_numpy(), made.dense("f32", 0))
    coords, _ = tensor.to_coords()
    assert all(np.array_equal(a, b) for a, b in zip(coords, made.coordinates(), strict=True))
    assert (np.abs(tensor.values) >= 0.5).all()


def test_formats_and_types() -> None:
    given = SPECS[2]
    for dtype in ("f16", "f32", "f64"):
        made = generator.tensor(given, dtype, "BSR(4,4)")
        assert np.array_equal(made.to_numpy(), generator.tensor(given, dtype, "dense").to_numpy())


def test_shares() -> None:
    for density in (0.02, 0.3, 0.9):  # below and above the density of masks
        for family in ("iid", "magnitude", "wanda"):
            found = generator.pattern(spec(family, 1000, 1000, density=density)).nnz / 1e6
            assert found == pytest.approx(density, rel=0.05), family
    for density in (0, 1):
        for family in ("iid", "magnitude", "wanda", "block"):
            rest = {"block": [4, 4]} if family == "block" else {}
            assert generator.pattern(spec(family, 50, 70, density=density, **rest)).nnz == (
                3500 * density
            )


def test_rows_of_a_budget() -> None:
    for count in (0, 7, 60, 200):
        rows = mask(generator.pattern(spec("row-budget", count=count))).sum(axis=1)
        assert (rows == count).all()


def test_groups() -> None:
    found = mask(generator.pattern(spec("n:m", 64, 68, n=2, m=4))).reshape(64, 17, 4)
    assert (found.sum(axis=2) == 2).all()
    assert (found.sum(axis=(0, 1)) > 400).all()  # no place of the four is preferred
    wide = mask(generator.pattern(spec("n:m", 8, 64, n=20, m=64)))
    assert (wide.sum(axis=1) == 20).all()


def test_groups_of_columns() -> None:
    found = mask(generator.pattern(spec("v:n:m", 128, 64, v=32, n=2, m=8)))
    groups = found.reshape(4, 32, 8, 8)
    assert (groups.sum(axis=3) == 2).all()
    assert (groups.any(axis=1).sum(axis=2) <= 4).all()


def test_blocks() -> None:
    found = mask(generator.pattern(spec("block", 64, 64, block=[8, 4], density=0.4)))
    cells = found.reshape(8, 8, 16, 4).sum(axis=(1, 3))
    assert sorted(np.unique(cells).tolist()) == [0, 32]


def test_bands() -> None:
    row, column = generator.pattern(spec("banded", 50, 60, below=2, above=3)).coordinates()
    assert set(np.unique(column - row)) == set(range(-2, 4))
    assert len(row) == 6 * 50 - 3


def test_stencils() -> None:
    found = mask(generator.pattern({"family": "stencil", "grid": [3, 4], "points": 5}))

    def line(n: int) -> Any:
        return np.eye(n, k=1, dtype=bool) | np.eye(n, k=-1, dtype=bool)

    kron: Any = np.kron
    expected = kron(np.eye(3), line(4)) + kron(line(3), np.eye(4)) + np.eye(12) > 0
    assert np.array_equal(found, expected)
    box = mask(generator.pattern({"family": "stencil", "grid": [3, 4, 2], "points": 27}))
    near = [np.eye(n, dtype=bool) | line(n) for n in (3, 4, 2)]
    assert np.array_equal(box, kron(near[0], kron(near[1], near[2])))


def test_graphs() -> None:
    symmetric = mask(generator.pattern({"family": "preferential", "rows": 400, "edges": 5}))
    assert np.array_equal(symmetric, symmetric.T)
    assert not symmetric.diagonal().any()
    degrees = np.sort(symmetric.sum(axis=0))
    assert degrees[-1] > 6 * np.median(degrees)
    rmat = mask(generator.pattern(spec("rmat", 512, 512, density=0.02)))
    assert rmat.sum() == round(512 * 512 * 0.02)
    assert rmat[:256, :256].sum() > 5 * rmat[256:, 256:].sum()
    zipf = np.sort(mask(generator.pattern(spec("zipf-rows", density=0.02))).sum(axis=1))
    assert zipf[-1] > 6 * np.median(zipf)


def test_pruned_weights() -> None:
    kept = mask(generator.pattern(spec("wanda", density=0.25)))
    assert (kept.sum(axis=1) == 50).all()
    by_column = np.sort(
        mask(generator.pattern(spec("magnitude", 2000, 200, density=0.25, outliers=0.05))).mean(
            axis=0
        )
    )
    assert by_column[-3] > 0.8 > 0.4 > by_column[100]


def test_clusters_and_fibers() -> None:
    near = generator.pattern(SPECS[18]).coordinates()
    assert len(np.unique(near[0] // 5)) < 4 or np.std(near[0]) < 7
    fibers = generator.pattern(
        {"family": "tensor-power-law", "shape": [50, 50, 50], "entries": 2000, "exponent": 1.2}
    ).coordinates()
    counts = np.bincount(fibers[0], minlength=50)
    assert counts.max() > 8 * np.median(counts)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"rows": 3}, "there is no family None"),
        ({"family": "idd"}, "there is no family 'idd'"),
        (spec("iid"), "density is missing"),
        (spec("iid", density="half"), "density is no number: 'half'"),
        (spec("iid", density=True), "density is no number"),
        (spec("iid", density=1.5), r"density is 1.5, outside \[0, 1\]"),
        (spec("iid", density=float("nan")), "density is nan"),
        (spec("iid", rows=0, density=0.5), "rows is 0, outside"),
        (spec("iid", density=0.5) | {"rows": 2.5}, "rows is no whole number"),
        (spec("iid", density=0.5, blocks=3), "there is no parameter 'blocks'"),
        (spec("block", density=0.5, block=4), "block is not a list: 4"),
        (spec("block", density=0.5, block=[4]), "block has 1 numbers"),
        (spec("block", density=0.5, block=[4, 0]), "block is 0, outside"),
        ({"family": "tensor-iid", "shape": [3, 4], "entries": 3}, "shape has 2 numbers"),
    ],
)
def test_bad_specs(given: Spec, problem: str) -> None:
    with pytest.raises((generator.BadSpec, generator.UnknownFamily), match=problem):
        generator.pattern(given)


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (spec("row-budget", count=201), BadChoice),
        (spec("n:m", n=5, m=4), BadChoice),
        ({"family": "stencil", "grid": [3, 4], "points": 7}, BadStencil),
        (spec("rmat", density=0.1, quadrants=[0.5, 0.5, 0.5, 0.5]), BadQuadrants),
        (spec("rmat", 64, 64, density=1.0), Saturated),
        (spec("iid", 2**30, 2**30, density=0.5), PatternTooLarge),
        (spec("iid", 2**30, 2**30, density=1e-6), PatternTooLarge),
        (spec("banded", 2**30, 2**30, below=9, above=9), PatternTooLarge),
        ({"family": "stencil", "grid": [2**20, 2**20], "points": 5}, PatternTooLarge),
        ({"family": "preferential", "rows": 2**31 - 1, "edges": 9}, PatternTooLarge),
        ({"family": "tensor-iid", "shape": [2**20] * 3, "entries": 2**30}, PatternTooLarge),
    ],
)
def test_refused(given: Spec, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        generator.pattern(given)


def test_names() -> None:
    one, same = SPECS[0], spec("iid", density=0.3, seed=0)
    assert generator.name_of(one) == generator.name_of(same) == "iid-" + generator.name_of(one)[4:]
    assert generator.name_of(one) != generator.name_of(same | {"seed": 1})
