"""What is to be done for an expression in a plan: amounts of work by kernel family, and their time.

The time of an expression is ``max(bytes, macs, issue) + launch``. Each of these four is a sum of amounts (entries
walked, rows begun, bytes moved from one cache level, …) times what one unit costs by the calibration of the machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparsecc.selection.calibrations import Calibration

Amounts = Mapping[str, float]
NONE: Amounts = {}


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
    return max(terms["bytes"], terms["macs"], terms["issue"]) + terms["launch"]
