"""Results as text and JSON, tables, and files that are written whole or not at all."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from sparsecc.storage.tensor import SparseTensor

SHOWN_ENTRIES = 100
SHOWN_CELLS = 1000


def note(text: str) -> None:
    """A line for the person at the terminal, not part of the result."""
    print(text, file=sys.stderr)


def write_text(path: Path, text: str) -> None:
    """Write a file by renaming a temporary one over it. Raises FileError."""
    from sparsecc.storage.files.whole import write_whole

    write_whole(path, text.encode("utf-8"))


def show_text(text: str, output: str | None) -> None:
    """Text to a file, or to stdout."""
    text = text if text.endswith("\n") else text + "\n"
    if output is None:
        sys.stdout.write(text)
    else:
        write_text(Path(output), text)


def show_json(value: Any) -> None:
    """JSON to stdout; what JSON lacks (infinities, complex numbers) as text."""
    print(json.dumps(_plain(value), allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {str(key): _plain(item) for key, item in items}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("list[Any]", value)]
    if isinstance(value, complex) or (isinstance(value, float) and not isfinite(value)):
        return str(value)
    return value


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table: drawn by rich on a terminal, aligned plain text elsewhere."""
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        drawn = Table(*heads)
        for row in rows:
            drawn.add_row(*row)
        Console(markup=False).print(drawn)
        return
    widths = [max(len(row[k]) for row in [heads, *rows]) for k in range(len(heads))]
    for row in [heads, *rows]:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())


def result_text(name: str, result: SparseTensor) -> str:
    """``y = [..]`` for dense tensors, one line an entry for others; long ones cut, with a note."""
    import numpy as np

    if result.format.is_dense:
        array = result.to_numpy()
        if not result.shape:
            return f"{name} = {array.item()}"
        if array.size > SHOWN_CELLS:
            note(f"{name} has {array.size} elements; -o FILE or --json gives all of them")
        # Continuation lines align under the first element.
        text = np.array2string(
            array, separator=", ", threshold=SHOWN_CELLS, prefix=f"{name} = ", max_line_width=100
        )
        return f"{name} = {text}"
    coords, values = result.to_coords()
    lines = [f"{name}: {description(result)}, {len(values)} entries"]
    for entry in range(min(len(values), SHOWN_ENTRIES)):
        place = ",".join(str(c[entry]) for c in coords)
        lines.append(f"{name}[{place}] = {values[entry].item()}")
    if len(values) > SHOWN_ENTRIES:
        lines.append("...")
        note(f"{name} has {len(values)} entries; -o FILE or --json gives all of them")
    return "\n".join(lines)


def description(tensor: SparseTensor) -> str:
    """Shape, type and format in a few words."""
    from sparsecc.formats import known_name

    shape = " x ".join(map(str, tensor.shape)) or "scalar"
    return f"{shape} {tensor.dtype} {known_name(tensor.format)}"


def result_json(name: str, result: SparseTensor) -> dict[str, Any]:
    """The result whole: nested lists if dense, else coordinates and values."""
    from sparsecc.formats import known_name

    facts: dict[str, Any] = {
        "name": name,
        "shape": list(result.shape),
        "dtype": str(result.dtype),
        "format": known_name(result.format),
    }
    if result.format.is_dense:
        return facts | {"values": result.to_numpy().tolist()}
    coords, values = result.to_coords()
    return facts | {"coordinates": [c.tolist() for c in coords], "values": values.tolist()}
