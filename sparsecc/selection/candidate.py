"""A plan: the format of each tensor, and who computes each expression. Plain data that hashes, prints and replays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from json import dumps
from typing import Any, cast

GENERATED = "generated"
"""The engine that is us; the others are libraries."""


@dataclass(frozen=True, order=True)
class Candidate:
    """``formats``: of the tensors that are to be chosen, names and spellings (``CSR``, ``BSR(4,4)``, ``dense``), sorted
    by name; a result that is not named has the format that is inferred. ``engines``: by expression, in order.
    ``schedules``: kernels by name and the schedule of each, where the compiler's own first choice is not meant."""

    formats: tuple[tuple[str, str], ...]
    engines: tuple[str, ...]
    schedules: tuple[tuple[str, str], ...] = ()

    @staticmethod
    def of(
        formats: Mapping[str, str], *engines: str, schedules: Mapping[str, str] | None = None
    ) -> Candidate:
        """A plan of mappings; no engine: generated kernels for one expression."""
        chosen = sorted((schedules or {}).items())
        return Candidate(tuple(sorted(formats.items())), engines or (GENERATED,), tuple(chosen))

    def format_of(self, name: str) -> str:
        return dict(self.formats)[name]

    @property
    def digest(self) -> str:
        """A name that equal plans share, on any machine."""
        return sha256(dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        return {
            "formats": dict(self.formats),
            "engines": list(self.engines),
            "schedules": dict(self.schedules),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Candidate:
        return Candidate.of(
            cast("Mapping[str, str]", data["formats"]),
            *data["engines"],
            schedules=data.get("schedules", {}),
        )

    def __str__(self) -> str:
        """``A=CSR by scipy``."""
        formats = " ".join(f"{name}={fmt}" for name, fmt in self.formats)
        engines = dict.fromkeys(self.engines)
        return f"{formats} by {', '.join(engines)}" if formats else ", ".join(engines)


TERMS = ("bytes", "macs", "issue", "launch", "conversion")
"""What a prediction is made of: seconds to move the bytes, to multiply and add, to issue the other instructions (the
largest of the three counts most: the root of the sum of their squares), to start the kernels, and the share of the conversions that one call bears."""


@dataclass(frozen=True)
class Ranked:
    """A plan and what a strategy says of it; ``seconds`` of one call, None where the strategy predicts no time."""

    candidate: Candidate
    seconds: float | None = None
    terms: Mapping[str, float] = field(default_factory=dict[str, float])
    """Seconds by name, as in TERMS; more may be there."""
    note: str = ""
    """A reason in words, for explanations."""


@dataclass(frozen=True)
class Refusal:
    """A plan that is not legal: what it is, why, and what would make it legal."""

    what: str
    reason: str
    remedy: str = ""
