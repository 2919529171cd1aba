"""Every unit of work that a cost model has is named in words."""

from __future__ import annotations

from sparsecc.explanation.prediction import WORDS
from sparsecc.selection.costs.families import FAMILIES


def test_units_have_words() -> None:
    units = {
        unit for families in FAMILIES.values() for costs in families.values() for unit in costs
    }
    assert "mac" in units
    nameless = {u for u in units if u not in WORDS and not u.startswith(("from_", "cold", "warm"))}
    assert not nameless, nameless
