"""Index arrays of sparse torch tensors, checked before a kernel follows them, which torch itself does not do.

Once for a tensor and a version of it; on a GPU that is a few reductions and one synchronisation.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from sparsecc.diagnostics import OperandError, UsageError
from sparsecc.runtime.torch_formats import compressed
from sparsecc.runtime.torch_guards import version

Check = tuple[Any, Callable[[int], str]]
"""True where an array is wrong, and what to say of the first such place."""


class BadIndices(OperandError):
    text = "operand {name!r} is no {layout} tensor that can be read: {problem}"
    help_text = "entries must be in range, in order, each there once; sparsecc.asarray({name}) sorts and adds them up"


class NotSeenBefore(UsageError):
    text = "operand {name!r} comes for the first time while a graph is captured, where its indices can't be checked"
    help_text = "call the kernel with this very tensor once before the capture"


_SEEN: dict[int, tuple[Any, int]] = {}
"""Weak references to tensors that have been checked, and their versions."""


def trust(tensor: Any) -> Any:
    """The tensor, known from now on as one whose indices are right."""
    now, key = version(tensor), id(tensor)
    if now is not None:
        _SEEN[key] = (weakref.ref(tensor, lambda _: _SEEN.pop(key, None)), now)
    return tensor


def trusted(tensor: Any) -> bool:
    """Whether this very tensor has been checked, and not changed since."""
    known = _SEEN.get(id(tensor))
    return known is not None and known[0]() is tensor and known[1] == version(tensor)


def check(name: str, tensor: Any, capturing: Callable[[], bool]) -> None:
    """Look at the indices of a sparse torch tensor, once. Raises BadIndices, NotSeenBefore."""
    if trusted(tensor):
        return
    if capturing():
        raise NotSeenBefore(name=name)
    layout = str(tensor.layout).removeprefix("torch.")
    if layout == "sparse_coo":
        problem = _problem(_coordinates(tensor._indices(), tuple(tensor.shape)))
    else:
        problem = _of_compressed(tensor, layout)
    if problem:
        raise BadIndices(name=name, layout=layout, problem=problem)
    trust(tensor)


def _of_compressed(tensor: Any, layout: str) -> str:
    outer, inner = compressed(tensor, f"torch.{layout}")
    values = tensor.values()
    extents = list(tensor.shape) if layout != "sparse_csc" else list(tensor.shape)[::-1]
    if layout == "sparse_bsr":
        extents = [extent // block for extent, block in zip(extents, values.shape[1:], strict=True)]
    rows, columns = extents
    if outer.shape[0] != rows + 1:
        return f"{outer.shape[0]} positions, {rows + 1} are wanted"
    if inner.shape[0] != values.shape[0]:
        return f"{inner.shape[0]} coordinates for {values.shape[0]} values"
    return _problem(_compressed(outer, inner, columns))


def _compressed(outer: Any, inner: Any, columns: int) -> Sequence[Check]:
    """The checks of positions, and of coordinates in the rows that they make."""
    torch: Any = sys.modules["torch"]
    count = int(inner.shape[0])
    starts = torch.zeros(count + 1, dtype=torch.bool, device=inner.device)
    starts.index_fill_(0, outer.clamp(0, count).long(), True)
    unsorted = (inner[1:] <= inner[:-1]) & ~starts[1 : max(count, 1)]
    return (
        (outer[:1] != 0, lambda n: f"positions begin with {int(outer[0])}, not 0"),
        (outer[1:] < outer[:-1], lambda n: f"positions[{n + 1}] is {int(outer[n + 1])}, less than the one before it"),
        (outer[-1:] != count, lambda n: f"positions end with {int(outer[-1])}, there are {count} coordinates"),
        _range(inner, columns, "coordinates"),
        (unsorted, lambda n: f"coordinates[{n + 1}] is {int(inner[n + 1])}, after {int(inner[n])} in the same row"),
    )  # fmt: skip


def _coordinates(indices: Any, shape: tuple[int, ...]) -> Sequence[Check]:
    """The checks of COO's coordinates: in range, in order, each entry once."""
    torch: Any = sys.modules["torch"]
    ranges = [
        _range(indices[d], extent, f"coordinates of dimension {d}")
        for d, extent in enumerate(shape)
    ]
    behind, before = indices[:, 1:], indices[:, :-1]
    larger = torch.zeros_like(behind[0], dtype=torch.bool)
    equal = ~larger
    for a, b in zip(before, behind, strict=True):
        larger |= equal & (b > a)
        equal &= a == b
    return (*ranges, (~larger, lambda n: f"entry {n + 1} does not come after entry {n}"))


def _range(array: Any, extent: int, what: str) -> Check:
    return (array < 0) | (
        array >= extent
    ), lambda n: f"{what}[{n}] is {int(array[n])}, outside of 0 to {extent - 1}"


def _problem(checks: Sequence[Check]) -> str:
    """What the first check that fails says of its first place. One synchronisation where all is well."""
    torch: Any = sys.modules["torch"]
    found = torch.stack([wrong.any() for wrong, _ in checks]).tolist()
    for failed, (wrong, say) in zip(found, checks, strict=True):
        if failed:
            return say(int(wrong.to(torch.uint8).argmax()))
    return ""
