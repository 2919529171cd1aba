"""Fitting: costs that made the times are found again, whatever the noise, and what is held out is not looked at."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sparsecc.research.fit import fit_units, fitted, prior
from sparsecc.research.observations import Observation, errors, predicted
from sparsecc.selection.candidate import Candidate
from sparsecc.selection.costs.work import Work

COSTS = {"from_dram": 1e-10, "entry": 2e-9, "row": 5e-9, "call": 1e-5}
BEFORE = {"from_dram": 5e-11, "entry": 5e-10, "row": 5e-10, "call": 3e-6}


def drawn(count: int, noise: float = 0.0, seed: int = 0) -> list[Observation]:
    """Plans whose times are made of COSTS; some are bound by bytes, some by entries, some by the call."""
    rng = np.random.default_rng(seed)
    found: list[Observation] = []
    for n in range(count):
        entries, rows = 10 ** rng.uniform(2, 7), 10 ** rng.uniform(1, 5)
        size = entries * rng.choice([2.0, 200.0])
        work = Work(
            "general", {"from_dram": size}, {}, {"entry": entries, "row": rows}, {"call": 1}
        )
        seconds = max(1e-10 * size, 2e-9 * entries + 5e-9 * rows) + 1e-5
        seconds *= float(np.exp(noise * rng.standard_normal()))
        found.append(Observation(f"p{n}", Candidate.of({}), work, seconds, seconds, n % 3 == 0))
    return found


def test_costs_are_found_again() -> None:
    found = fitted(drawn(200), BEFORE)
    assert found == pytest.approx(COSTS, rel=0.1)
    noisy = fitted(drawn(400, noise=0.1), BEFORE)
    assert noisy == pytest.approx(COSTS, rel=0.2)


def test_a_unit_that_no_plan_has_keeps_its_cost() -> None:
    assert fitted(drawn(50), {**BEFORE, "wide": 7e-9})["wide"] == pytest.approx(7e-9)


def test_outliers_do_not_carry_the_fit_away() -> None:
    seen = drawn(200)
    busy = [replace(o, seconds=20 * o.seconds) for o in seen[:10]]
    found = fitted([*busy, *seen[10:]], BEFORE)
    assert found == pytest.approx(COSTS, rel=0.2)


def test_what_is_held_out_is_not_fitted() -> None:
    start = prior("cpu")
    start = replace(start, families={**start.families, "general": BEFORE})
    seen = drawn(300)
    spoilt = [replace(o, seconds=100 * o.seconds) if o.held_out else o for o in seen]
    assert fit_units(spoilt, start)[0] == fit_units(seen, start)[0]
    made, loss = fit_units(seen, start)
    assert loss < 1e-3
    found = errors([o for o in seen if o.held_out], made)
    assert found.count == 100 and found.median < 0.02 and found.p90 < 0.1
    assert predicted(seen[0], made) == pytest.approx(seen[0].seconds, rel=0.1)
