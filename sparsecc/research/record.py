"""Recording a table: ``python -m sparsecc.research.record --target cpu|gpu -o FOLDER/NAME``.

Every plan of every problem of a corpus, measured here. What is found is written as it is found; ``--seconds`` ends a
run in good time, ``--resume`` goes on with it."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import monotonic, time
from typing import Any

from sparsecc.diagnostics import SparseccError
from sparsecc.research import corpus
from sparsecc.research.corpus import CorpusProblem
from sparsecc.research.recording import Recording
from sparsecc.research.table import Time
from sparsecc.research.threads import one_thread

Found = Iterator[tuple[CorpusProblem, list[Time]]]
"""What recorders give: problems with the statistics of their matrices, and what was measured of each."""
Measurer = Callable[[Sequence[Sequence[CorpusProblem]], Recording, argparse.Namespace], Found]

MODULE = "sparsecc.research.record"
RECORDERS = {
    "cpu": "sparsecc.research.record_cpu:record_cpu",
    "gpu": "sparsecc.research.record_gpu:record_gpu",
}
"""What measures, by target: ``gpu`` is any of them."""
LIBRARIES = {
    "cpu": ("blas", "scipy"),
    "gpu": ("cublas", "cusparselt", "cusparse"),
}
"""Engines whose plans are measured."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of a recording."""
    parser.add_argument("--target", default="cpu", help="cpu, or gpu: the one that is present")
    parser.add_argument("--corpus", help="name of a corpus (default: cpu or gpu, by the target)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so many")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT",
                        help="problems whose names hold one of these texts")  # fmt: skip
    parser.add_argument("--resume", action="store_true", help="go on with what -o has")
    parser.add_argument("--workers", type=int, help="processes that compile for a GPU")
    parser.add_argument("--commit", help="what the table says that it is of (default: git's)")
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)  # seconds of the clock
    parser.add_argument("--skip", action="append", default=[], help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER/NAME",
                        help="where the three files of the table go")  # fmt: skip


def defaults(**given: object) -> argparse.Namespace:
    """The options of a recording, with what is given in place of what they are else."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    found = parser.parse_args(["-o", ""])
    for name, value in given.items():
        assert name in vars(found), name
        setattr(found, name, value)
    return found


def record(options: argparse.Namespace) -> None:
    """Measure what is asked for. Raises SparseccError."""
    kind = "cpu" if options.target == "cpu" else "gpu"
    record_problems(corpus.problems(options.corpus or kind), options)


def record_problems(
    problems: Iterable[CorpusProblem],
    options: argparse.Namespace,
    tell: Callable[[int, int, str], None] | None = None,
) -> None:
    """Measure problems of the target; ``tell`` hears how many of how many are done, and what was found of the last one
    (default: on stderr). Raises SparseccError."""
    groups = ordered(problems, options.only)
    if options.until is None:
        options.until = time() + options.seconds
    output = Recording(Path(options.output), resume=options.resume)
    left = [[p for p in group if p.id not in output.done] for group in groups]
    left = [group for group in left if group]
    module, _, name = RECORDERS["cpu" if options.target == "cpu" else "gpu"].partition(":")
    measure: Measurer = getattr(import_module(module), name)
    count, all_of_them = len(output.done), sum(map(len, groups))
    begin = monotonic()
    for problem, times in measure(left, output, options):
        output.add(problem, times)
        count += 1
        if tell is not None:
            tell(count, all_of_them, line(problem, times))
        else:
            note(f"{count}/{all_of_them} {monotonic() - begin:.0f} s {line(problem, times)}")
    if tell is None:
        note(f"{count} of {all_of_them} problems are in {options.output}")


def ordered(
    problems: Iterable[CorpusProblem], only: Sequence[str] = ()
) -> list[tuple[CorpusProblem, ...]]:
    """Problems by matrix, in an order of which any beginning is balanced: families take turns."""
    kept = [p for p in problems if not only or any(text in p.id for text in only)]
    families: dict[tuple[str, str], list[tuple[CorpusProblem, ...]]] = {}
    for group in sorted(corpus.groups(kept), key=lambda group: group[0].matrix):
        families.setdefault((group[0].family, group[0].operation), []).append(group)
    # Each family is spread evenly over the whole.
    places = [
        ((n + 0.5) / len(groups), group) for groups in families.values() for n, group in enumerate(groups)
    ]  # fmt: skip
    return [group for _, group in sorted(places, key=lambda pair: pair[0])]


def enough(options: argparse.Namespace) -> bool:
    """Whether the time is over."""
    return time() >= options.until


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def line(problem: CorpusProblem, times: Sequence[Time]) -> str:
    """What was found, fastest first, on one line."""
    ran = sorted((t.seconds, str(t.candidate)) for t in times if t.seconds is not None)
    shown = ", ".join(f"{plan} {seconds * 1e6:.4g}" for seconds, plan in ran)
    lost = "; ".join(f"{t.candidate}: {t.failure[:60]}" for t in times if t.failure)
    return f"{problem.id}: {shown} us" + (f" [{lost}]" if lost else "")


def first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}"


def facts(options: argparse.Namespace, target: str, packages: Sequence[str]) -> dict[str, Any]:
    """What a table says of where it was made."""
    from sparsecc.bench.machine import commit

    return {
        "target": target,
        "machine": {
            "cpu": processor(), "cores": os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "versions": {
            "python": platform.python_version(),
            **{name: found for name in packages if (found := installed(name))},
        },
        "commit": options.commit or commit(),
        "command": command(options),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }  # fmt: skip


def command(options: argparse.Namespace) -> str:
    """The command that makes such a table."""
    words = ["sparsecc", "research", "record", "--target", options.target]
    words += ["--corpus", options.corpus] if options.corpus else []
    words += [f"--only={text}" for text in options.only]
    if options.seconds != float("inf"):
        words += ["--seconds", f"{options.seconds:g}"]
    return " ".join([*words, "-o", options.output])


def processor() -> str:
    """The name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [text.partition(":")[2].strip() for text in lines if text.startswith("model name")]
    return names[0] if names else platform.processor()


def installed(name: str) -> str:
    """The version of a package; empty if it is not there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def again(options: argparse.Namespace, skip: Sequence[str] = ()) -> Sequence[str]:
    """The arguments of a process that goes on with this recording."""
    arguments = ["--target", options.target, "--output", options.output, "--resume"]
    arguments += ["--until", repr(options.until), "--seconds", repr(options.seconds)]
    arguments += ["--corpus", options.corpus] if options.corpus else []
    arguments += ["--workers", str(options.workers)] if options.workers else []
    arguments += ["--commit", options.commit] if options.commit else []
    for name, values in (("only", options.only), ("skip", [*options.skip, *skip])):
        arguments += [f"--{name}={value}" for value in values]
    return arguments


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description=__doc__)
    add_arguments(parser)
    options = parser.parse_args(arguments)
    if options.target == "cpu":
        one_thread(MODULE, sys.argv[1:] if arguments is None else arguments)
    try:
        record(options)
    except SparseccError as error:
        note(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
