"""The commands on files and passes: opt, convert, inspect."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from sparsecc.cli.operands import check_format, read_operand, split_format
from sparsecc.cli.output import description, note, show_json, show_text
from sparsecc.diagnostics import FileError


def opt(options: Namespace) -> None:
    """``sparsecc opt``: run passes on MLIR text."""
    from sparsecc import pipeline

    if options.file == "-":
        text, name = sys.stdin.read(), "<stdin>"
    else:
        text, name = read_text(options.file), options.file
    shown = pipeline.run_text(
        text,
        name,
        options.pipeline,
        print_after_all=options.print_after_all,
        verify_each=options.verify_each,
    )
    show_text(shown, options.output)


def read_text(path: str) -> str:
    """The text of a file. Raises OSError, and FileError if it is none."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FileError(f"byte {error.start} is not UTF-8 text", place=path) from None


def convert(options: Namespace) -> None:
    """``sparsecc convert``: a file to another kind of file, or another format."""
    from sparsecc.storage import files

    if options.format is not None:
        check_format(options.format)
    tensor = read_operand(Path(options.input), options.format, key=options.key)
    files.write(tensor, options.output)
    note(f"{options.output}: {description(tensor)}, {tensor.nnz} entries")


def inspect(options: Namespace) -> None:
    """``sparsecc inspect``: what is in a file, and what formats would gain on a target."""
    from sparsecc import inspection
    from sparsecc.driver import named_target

    if options.target is not None:
        named_target(options.target)
    path, format = split_format(options.file)
    tensor = read_operand(path, format, key=options.key)
    found = inspection.inspect(tensor)
    predicted = None
    if options.target is not None and len(tensor.shape) == 2:
        from sparsecc.cli.explain import predicted_gains

        predicted = predicted_gains(found.statistics, found.format, options.target)
    if options.json:
        more = {} if options.target is None else {"predicted": predicted and predicted.to_json()}
        show_json({"file": str(path)} | found.to_json() | more)
        return
    print(f"{path}\n{found.text()}")
    if predicted is not None:
        print(predicted.text())
    elif options.target is not None:
        note("gains are predicted for matrices; 'sparsecc explain' does it for an expression")
