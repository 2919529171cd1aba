"""What a level format may ask of a code generator, without knowing which one it is.

Level formats describe how they are walked as calls on a :class:`LoopBuilder`. The compiler hands in a
builder that makes loop IR; a test may hand in one that computes on integers. Values are opaque.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

Value = Any
"""An index-typed (or boolean) value of whatever the builder makes; a level only passes it on."""


class LoopBuilder(Protocol):
    """Index arithmetic, loads of positions and coordinates, and two searches."""

    def index(self, value: int) -> Value: ...
    def add(self, a: Value, b: Value) -> Value: ...
    def sub(self, a: Value, b: Value) -> Value: ...
    def mul(self, a: Value, b: Value) -> Value: ...
    def div(self, a: Value, number: int) -> Value: ...
    def mod(self, a: Value, number: int) -> Value: ...
    def lt(self, a: Value, b: Value) -> Value: ...
    def eq(self, a: Value, b: Value) -> Value: ...
    def ne(self, a: Value, b: Value) -> Value: ...

    def bit(self, word: Value, at: Value) -> Value:
        """Whether bit ``at`` (below 32) of a word is set, as a boolean."""
        ...

    def bits_below(self, word: Value, at: Value) -> Value:
        """How many of the lowest ``at`` (below 32) bits of a word are set."""
        ...

    def load(self, array: Value, position: Value) -> Value:
        """``array[position]`` zero-extended to an index; signed widths are stored non-negative."""
        ...

    def scan(self, lo: Value, hi: Value, go_on: Callable[[Value], Value]) -> Value:
        """The first ``p`` in ``[lo, hi)`` for which ``go_on(p)`` is false, else ``hi``."""
        ...

    def lower_bound(self, array: Value, lo: Value, hi: Value, key: Value) -> Value:
        """The first ``p`` in ``[lo, hi)`` with ``array[p] >= key``, else ``hi``; ``array`` ascends there."""
        ...

    def guarded(self, condition: Value, then: Callable[[], Value]) -> Value:
        """``condition and then()``, where ``then`` is evaluated only if the condition holds."""
        ...


@dataclass(frozen=True)
class LevelCode:
    """The runtime values of one level of one operand: its arrays (None where it has none) and its size."""

    positions: Value | None
    coordinates: Value | None
    size: Value
