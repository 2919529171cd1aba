"""A call of a library on a GPU that has been made before: nothing but the dense tensors is new."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sparsecc.runtime.torch_guards import version


@dataclass(frozen=True)
class LibraryRecipe:
    """A call for a signature of operands, see :mod:`sparsecc.runtime.tile_recipe`."""

    call: Callable[[Sequence[Any], Any], Any]
    """Gives the result of operands by number, in ``out`` if there is one; None if what was made of one is gone."""
    alive: tuple[tuple[int, Callable[[], Any], int], ...]
    """Operands that must be the same objects, and unchanged: weak references and versions."""
    dense: tuple[int, ...]
    """Operands that are read as they lie."""
    allocates: bool
    """Whether the result gets memory of its own; else the last of what is given is it."""

    def run(self, given: Sequence[Any]) -> Any:
        """The result; None if an operand is not the one that it was, or may share memory with the result."""
        for place, reference, known in self.alive:
            value = given[place]
            if reference() is not value or version(value) != known:
                return None
        if self.allocates:
            return self.call(given, None)
        *operands, out = given
        memory = out.untyped_storage().data_ptr()
        for number in self.dense:
            if operands[number].untyped_storage().data_ptr() == memory:
                return None
        return self.call(operands, out)
