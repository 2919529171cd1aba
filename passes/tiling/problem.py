"""What the space of a contraction's schedules depends on, and what one schedule is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil, log

from sparsecc.targets import Target

DEFAULT_TOKENS = 16
"""Tokens of a problem that nobody has sized: a few sequences that are being decoded."""
DEFAULT_PROCESSORS = 132
UNIT_COLUMNS = 64
"""Columns of a packed unit; one of 16-bit values holds two steps of the instruction, one of 8-bit values one."""


@dataclass(frozen=True)
class Problem:
    """A contraction, as far as it is known when its kernel is made (None: not known)."""

    weight: str
    """``2:4`` or ``2:4+CSR``."""
    dtype: str
    tokens: int | None = None
    rows: int | None = None
    reduction: int | None = None
    aligned: bool = True
    """Whether rows of X begin at multiples of 16 bytes."""
    x_order: str = "tk"
    """``tk``: k is contiguous; ``kt``: tokens are."""
    steps: int | None = None
    """Steps of a chunk, where the weight is packed in chunks already (``2:4+CSR``)."""

    @property
    def m(self) -> int:
        """Tokens, assumed where they are not known."""
        return self.tokens or DEFAULT_TOKENS

    @property
    def residual(self) -> bool:
        return self.weight != "2:4"

    @property
    def step_columns(self) -> int:
        """Columns of one matrix instruction: 64 bytes of X."""
        return 64 if self.dtype == "i8" else 32

    def chunks(self, steps: int) -> int | None:
        """Chunks of k, None if its extent is not known."""
        return (
            None if self.reduction is None else ceil(self.reduction / (steps * self.step_columns))
        )


@dataclass(frozen=True)
class Schedule:
    """A member of a space."""

    family: str
    parameters: Mapping[str, int]
    reason: str
    """Why it is there, for the user."""

    @property
    def key(self) -> tuple[str, tuple[tuple[str, int], ...]]:
        return self.family, tuple(self.parameters.items())


def shared_bytes(target: Target) -> int:
    """Shared memory that one block can have."""
    rate = target.rate("shared_memory")
    return 0 if rate is None else int(rate.value)


def processors(target: Target) -> int:
    """Multiprocessors."""
    rate = target.rate("processors")
    return DEFAULT_PROCESSORS if rate is None else int(rate.value)


def bucket(tokens: int, sizes: Iterable[int]) -> int:
    """The smallest size that holds all tokens, else the largest."""
    found = sorted(sizes)
    return next((size for size in found if tokens <= size), found[-1])


def nearest(problem: Problem, target: Target, shapes: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Of shapes (rows, reduction) measured on 132 multiprocessors, that which is most like the problem here."""
    known = list(shapes)
    if problem.rows is None:
        return known[0]
    rows = problem.rows * DEFAULT_PROCESSORS / processors(target)
    columns = problem.reduction or rows

    def distance(shape: tuple[int, int]) -> float:
        # How many programs there are matters more than how long each runs.
        return 2 * abs(log(rows / shape[0])) + abs(log(columns / shape[1]))

    return min(known, key=distance)


def fill(blocks: int, target: Target, longest: int) -> int:
    """Into how many parts (a power of two, at most ``longest``) to cut k so that most processors have a block."""
    parts = 1
    while parts * 2 <= longest and blocks * parts * 4 < 3 * processors(target):
        parts *= 2
    return parts


def balance(blocks: int, target: Target) -> float:
    """The part of the processors' time that is used if each block takes as long: 1 for whole waves."""
    count = processors(target)
    return blocks / count / ceil(blocks / count) if blocks else 0.0


def power_above(value: int) -> int:
    """The smallest power of two that is not below a number."""
    return 1 << (value - 1).bit_length()


def distinct(schedules: Iterable[Schedule]) -> list[Schedule]:
    """Schedules in order, each once."""
    found: dict[object, Schedule] = {}
    for schedule in schedules:
        found.setdefault(schedule.key, schedule)
    return list(found.values())
