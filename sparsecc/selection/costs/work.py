"""What is to be done for an expression in a plan: amounts of work by kernel family, and their time.

The time of an expression is ``max(bytes, macs, issue) + launch``, with corners that are rounded, since the three do not
overlap wholly: ``(bytes^p + macs^p + issue^p)^(1/p)`` where p is OVERLAP. Each of the four is a sum of amounts (entries
walked, rows begun, bytes moved from one cache level, …) times what one unit costs by the calibration of the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparsecc.selection.calibrations import Calibration

Amounts = Mapping[str, float]
OVERLAP = 2.0
"""1: the three would follow each other; infinite: the longest one would hide the others."""


@dataclass(frozen=True)
class Work:
    """Amounts by unit of a kernel family."""

    family: str
    bytes: Amounts = field(default_factory=dict[str, float])
    macs: Amounts = field(default_factory=dict[str, float])
    issue: Amounts = field(default_factory=dict[str, float])
    launch: Amounts = field(default_factory=dict[str, float])

    def seconds(self, calibration: Calibration) -> dict[str, float]:
        """Seconds by term."""
        return {
            term: sum(
                amount * calibration.cost(self.family, unit)
                for unit, amount in amounts.items()
                if amount
            )
            for term, amounts in (
                ("bytes", self.bytes),
                ("macs", self.macs),
                ("issue", self.issue),
                ("launch", self.launch),
            )
        }


def total(terms: Mapping[str, float]) -> float:
    """The time of one expression from its terms."""
    parts = (terms["bytes"], terms["macs"], terms["issue"])
    largest = max(parts)
    if largest <= 0:
        return terms["launch"]
    rounded = sum((part / largest) ** OVERLAP for part in parts) ** (1 / OVERLAP)
    return largest * rounded + terms["launch"]
