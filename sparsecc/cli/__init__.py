"""The command line: ``sparsecc COMMAND …``.

Results go to stdout or ``-o``, everything else to stderr.

Exit status: 0 done, 1 the program failed (one clear message), 2 wrong usage.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from collections.abc import Sequence
from typing import IO

from sparsecc.cli.commands import COMMANDS, find_command, overview
from sparsecc.diagnostics import InternalError, SparseccError, UsageError

DONE, FAILED, WRONG_USAGE, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141

HELD: list[IO[str]] = []

__all__ = ["COMMANDS", "main"]


def main(argv: Sequence[str] | None = None) -> int:
    """The console script: runs a command and gives its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    _stand_in_for_closed_files()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note_warning
            status = _run([a for a in arguments if a != "--debug"])
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Nobody reads on (`| head`). Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return PIPE_CLOSED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except SystemExit as stop:  # argparse: --help, or a usage error that it has printed
        return stop.code if isinstance(stop.code, int) else DONE
    except Exception as error:
        if debug:
            import traceback

            traceback.print_exc()
        print(message_of(error), file=sys.stderr)
        return WRONG_USAGE if isinstance(error, UsageError) else FAILED


class _ClosedOutput(io.TextIOBase):
    """Standard output that the shell has closed (``>&-``): only a result for it is an error."""

    def write(self, _text: str, /) -> int:
        raise OSError(errno.EBADF, "standard output is closed")


def _stand_in_for_closed_files() -> None:
    """Python has None for what the shell has closed."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # Held open, or the next file that is opened would be the standard one.
            file = open(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8")
            HELD.append(file)
            setattr(sys, name, _ClosedOutput() if name == "stdout" else file)


def _note_warning(message: Warning | str, *_place: object) -> None:
    """What a library warns of (an operand that is converted), without the line of ours it names."""
    print(f"note: {message}", file=sys.stderr)


def _run(arguments: list[str]) -> int:
    if not arguments:
        print(overview(), file=sys.stderr)
        return WRONG_USAGE
    if arguments[0] in ("-h", "--help", "help"):
        print(overview())
        return DONE
    if arguments[0] == "--version":
        from importlib.metadata import PackageNotFoundError, version

        try:
            print("sparsecc", version("sparsecc"))
        except PackageNotFoundError:
            print("sparsecc (from a checkout that is not installed)")
        return DONE
    return find_command(arguments[0]).run(arguments[1:])


def message_of(error: Exception) -> str:
    """What a user reads about an error, without a traceback."""
    if isinstance(error, SparseccError):
        # A checker's errors are joined in args; a single one has its rendered text there.
        message = str(error)
        if isinstance(error, InternalError):
            message += "\nuse --debug for the traceback"
        return message
    if isinstance(error, MemoryError):
        return f"error: out of memory{f': {error}' if str(error) else ''}"
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename is not None else ""
        return f"{place}error: {(error.strerror or str(error)).lower()}"
    fault = InternalError(f"internal error: {type(error).__name__}: {error}")
    return f"{fault}\nuse --debug for the traceback"
