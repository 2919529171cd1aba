"""TACO's own flags, so that its published command lines run: ``-f=B:ds -t=B:float -d=i:100
-i=B:x.mtx -o=a:y.tns -print-kernels -time=10``.

They are translated to ours. Without any ``-i`` TACO prints kernels and runs nothing, and so do we.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sparsecc.cli.operands import check_dtype, check_format
from sparsecc.diagnostics import UsageError, did_you_mean

FLAG = re.compile(r"-([a-z][a-z-]*)(?:=(.*))?", re.DOTALL)
NAMED = {"f", "t", "d", "i", "o"}
PRINTING = {"print-kernels", "print-compute", "print-assembly"}
SILENT = {"print-nocolor"}
TYPES = {"float": "float32", "double": "float64", "int": "int32", "bool": "bool"}


def is_taco(arguments: Sequence[str]) -> bool:
    """Whether a command line uses TACO's flags (ours of one dash take no ``=``)."""
    for argument in arguments:
        match = FLAG.fullmatch(argument)
        if match and (match[1] in PRINTING | SILENT or (match[2] is not None)):
            return True
    return False


def translate(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The command that TACO's command line stands for, and its arguments in our spelling."""
    program, named, plain = _split(arguments)
    accesses, result = _accesses(program)
    ranks = {name: len(indices) for name, indices in accesses.items()}
    ours = [program]
    for name, format in named["f"].items():
        check_format(format, ranks[_known(name, ranks, "-f")])
        ours += ["--out-format", format] if name == result else ["--format", f"{name}={format}"]
    for name, dtype in named["t"].items():
        if _known(name, ranks, "-t") == result:
            raise _mistake(
                f"the type of the result follows from its operands; leave -t={name}:{dtype} out"
            )
        ours += ["--dtype", f"{name}={check_dtype(TYPES.get(dtype, dtype))}"]
    extents = _extents(named["d"], accesses)
    for name, path in named["o"].items():
        if _known(name, ranks, "-o") != result:
            raise _mistake(f"-o names {name!r}, but the result is {result!r}")
        ours += ["-o", path]
    if not named["i"]:
        for name, indices in accesses.items():
            if name != result and any(index in extents for index in indices):
                shape = "x".join(str(extents.get(index, "?")) for index in indices)
                ours += ["--shape", f"{name}={shape}"]
        return "compile", [*ours, "--emit", "c"]
    ours += [f"{_known(name, ranks, '-i')}={path}" for name, path in named["i"].items()]
    for index, extent in extents.items():
        ours += ["--extent", f"{index}={extent}"]
    if PRINTING & plain.keys():
        ours += ["--print-source"]
    if "time" in plain:
        ours += ["--time", plain["time"] or "1"]
    return "run", ours


def _split(arguments: Sequence[str]) -> tuple[str, dict[str, dict[str, str]], dict[str, str]]:
    """The expression, the flags that name something, and the others."""
    programs: list[str] = []
    named: dict[str, dict[str, str]] = {flag: {} for flag in NAMED}
    plain: dict[str, str] = {}
    for argument in arguments:
        match = FLAG.fullmatch(argument)
        if match is None:
            programs.append(argument)
            continue
        flag, value = match[1], match[2] or ""
        if flag in NAMED:
            name, colon, rest = value.partition(":")
            if not (name and colon and rest):
                raise _mistake(f"{argument!r} is not -{flag}=NAME:VALUE")
            if name in named[flag]:
                raise _mistake(f"-{flag} names {name!r} twice: {named[flag][name]!r} and {rest!r}")
            named[flag][name] = rest
        elif flag in PRINTING | SILENT | {"time"}:
            plain[flag] = value
        else:
            known = [f"-{name}" for name in sorted(NAMED | PRINTING | SILENT | {"time"})]
            raise UsageError(
                f"TACO's flag -{flag} is not known here",
                place="sparsecc",
                help=did_you_mean(f"-{flag}", known),
            )
    if len(programs) != 1:
        raise _mistake(f"TACO's flags go with one expression, not {len(programs)}")
    return programs[0], named, plain


def _accesses(program: str) -> tuple[dict[str, tuple[str, ...]], str]:
    """The indices of each tensor where it is first named, and the name of the result."""
    from sparsecc.frontends.ast import Access, Scalar, walk
    from sparsecc.frontends.index_notation import parse

    found: dict[str, tuple[str, ...]] = {}
    statements = parse(program).statements
    for statement in statements:
        for node in (statement.target, *walk(statement.expr)):
            if isinstance(node, Access):
                found.setdefault(node.name, tuple(str(index) for index in node.indices))
            elif isinstance(node, Scalar):
                found.setdefault(node.name, ())
    return found, statements[-1].target.name


def _extents(given: dict[str, str], accesses: dict[str, tuple[str, ...]]) -> dict[str, int]:
    """``-d``: the extent of an index, or all of a tensor's as ``-d=B:10,20``."""
    extents: dict[str, int] = {}
    indices = {index for names in accesses.values() for index in names}
    for name, text in given.items():
        numbers = text.split(",")
        if not all(number.isdecimal() for number in numbers):
            raise _mistake(f"-d={name}:{text} is not a dimension")
        if name in accesses and len(numbers) == len(accesses[name]):
            sizes = dict(zip(accesses[name], map(int, numbers), strict=True))
        elif name in indices and len(numbers) == 1:
            sizes = {name: int(text)}
        else:
            known = sorted(indices | accesses.keys())
            raise UsageError(
                f"-d={name}:{text} fits no index and no tensor",
                place="sparsecc",
                help=did_you_mean(name, known),
            )
        for index, size in sizes.items():
            if extents.setdefault(index, size) != size:
                raise _mistake(f"-d gives {index!r} two extents: {extents[index]} and {size}")
    return extents


def _known(name: str, ranks: dict[str, int], flag: str) -> str:
    if name not in ranks:
        raise UsageError(
            f"{flag} names {name!r}, which is not in the expression",
            place="sparsecc",
            help=did_you_mean(name, list(ranks)),
        )
    return name


def _mistake(text: str) -> UsageError:
    return UsageError(text, place="sparsecc")
