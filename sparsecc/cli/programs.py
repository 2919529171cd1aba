"""The commands that compile a program: run, compile; and what explain shares with them."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from sparsecc.cli.commands import EMIT_ALL, EMIT_CPU, EMIT_GPU
from sparsecc.cli.operands import (
    OPEN,
    Operand,
    check_dtype,
    check_format,
    load,
    pairs,
    parse_dtypes,
    parse_operands,
    parse_shapes,
)
from sparsecc.cli.output import note, result_json, result_text, show_json, show_text
from sparsecc.cli.plans import opened, plan_options, save_plan
from sparsecc.diagnostics import FileError, UsageError, did_you_mean

if TYPE_CHECKING:
    from sparsecc.api import Kernel


def run(options: Namespace) -> None:
    """``sparsecc run``: the result to -o, or as text."""
    if options.output is not None:
        _check_output(Path(options.output))
    kernel, operands = _kernel(options)
    result = kernel.call(operands)
    if options.explain:
        note(kernel.explain())
    if options.print_source:
        note(kernel.source)
    if options.time:
        _time(kernel, operands, options.time)
    _give(result, options, {"formats": kernel.formats, "times": kernel.times})


def _give(result: Any, options: Namespace, facts: dict[str, Any]) -> None:
    """The result to -o, as JSON, or as text; an .mlir function may have several."""
    from sparsecc.storage.ingest import asarray

    results = cast("tuple[Any, ...]", result) if isinstance(result, tuple) else (result,)
    name = _result_name(options.program)
    names = [name] if len(results) == 1 else [f"{name}{k}" for k in range(len(results))]
    tensors = {name: asarray(value) for name, value in zip(names, results, strict=True)}
    if options.output is not None:
        if len(tensors) != 1:
            raise UsageError(
                f"the program has {len(tensors)} results, -o writes one",
                place="sparsecc",
                help="leave -o out, or use --json",
            )
        tensors[name].save(options.output)
        if options.json:
            show_json({"results": [{"name": name, "file": options.output}]} | facts)
    elif options.json:
        show_json({"results": [result_json(n, tensor) for n, tensor in tensors.items()]} | facts)
    else:
        for n, tensor in tensors.items():
            print(result_text(n, tensor))


def compile(options: Namespace) -> None:
    """``sparsecc compile``: one stage of a kernel as text."""
    if options.target == "cpu" and options.emit in EMIT_GPU:
        raise UsageError(
            f"--emit {options.emit} is for GPU targets",
            place="sparsecc",
            help="add --target sm_80, sm_90 or sm_100; no GPU is needed",
        )
    if options.target != "cpu" and options.emit in EMIT_CPU:
        raise UsageError(
            f"--emit {options.emit} is for the target cpu",
            place="sparsecc",
            help=f"a GPU's: {', '.join(EMIT_ALL + EMIT_GPU)}",
        )
    kernel, _ = _kernel(options)
    emit: str = options.emit or ("c" if options.target == "cpu" else "triton")
    show_text(kernel.texts("optimized" if emit == "llvm" else emit), options.output)


# -- compiling ---------------------------------------------------------------------------------


def _kernel(options: Namespace) -> tuple[Kernel, dict[str, Any]]:
    """The kernel of a command line, and the operands that came with it."""
    named, formats, dtypes = said(options)
    program: str = options.program
    is_open = opened(named, formats)
    if is_mlir(program):
        refuse_open(is_open)
        return mlir_kernel(options, plan_options(options)), load(named, formats, dtypes)
    check_expression(program)
    operands = load(named, formats, dtypes)
    given = dict(operands)
    if options.command == "run":
        for option, names in (("--format", formats), ("--dtype", dtypes)):
            for name in names:
                if name and name not in operands:
                    raise UsageError(
                        f"{option} names {name!r}, which is no operand here",
                        place="sparsecc",
                        help=did_you_mean(name, list(operands)),
                    )
        _check_extents(program, operands, options.extent)
    else:
        given |= specs(program, formats, dtypes, parse_shapes(options.shape), set(operands))
    chosen = plan_options(options)
    if options.command == "run" and "plan" not in chosen:
        chosen.setdefault("calls", options.time + 1)
    return expression_kernel(options, given, is_open, chosen), operands


def said(options: Namespace) -> tuple[dict[str, Operand], dict[str, str], dict[str, str]]:
    """The operands of a command line, and the formats and types that options give them. Raises UsageError."""
    formats = pairs(options.format, "a format NAME=FORMAT")
    for spelling in formats.values():
        if spelling != OPEN:
            check_format(spelling)
    dtypes = parse_dtypes(options.dtype)
    if options.out_format is not None:
        check_format(options.out_format)
    return parse_operands(options.operands), formats, dtypes


def is_mlir(program: str) -> bool:
    """Whether a program is a file (or ``-``), and not an expression."""
    return program == "-" or program.endswith(".mlir")


def refuse_open(is_open: dict[str, str]) -> None:
    """Raise UsageError for operands of an .mlir file that the command line opens."""
    if is_open:
        raise UsageError(
            f"{next(iter(is_open))}=FILE:* does not go with an .mlir file",
            place="sparsecc",
            help="its types say which formats are open: #sparse_tensor.encoding<*>",
        )


def check_expression(program: str) -> None:
    """Raise UsageError for what is no assignment."""
    if "=" not in program:
        raise UsageError(
            f"{program!r} is neither an expression nor the name of an .mlir file",
            place="sparsecc",
            help="write an assignment: 'y[i] = A[i,j] * x[j]'",
        )


def check_names(given: dict[str, Any]) -> None:
    """Raise UsageError for operands that have the name of an option of ``api.compile``."""
    from inspect import signature

    from sparsecc import api

    taken = [
        name
        for name, parameter in signature(api.compile).parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD and name in given
    ]
    if taken:
        raise UsageError(
            f"an operand can't be called {taken[0]!r}",
            place="sparsecc",
            help="rename it: the name is an option's",
        )


def expression_kernel(
    options: Namespace, given: dict[str, Any], is_open: dict[str, str], chosen: dict[str, Any]
) -> Kernel:
    """The kernel of an expression for operands or Specs. ``chosen``: how a plan is found."""
    from sparsecc import api

    check_names(given)
    out_dtype = None if options.out_dtype is None else check_dtype(options.out_dtype)
    if is_open and "plan" not in chosen:  # a plan names the formats of what is open
        chosen = {**chosen, "formats": is_open}
    kernel = api.compile(
        options.program,
        out=options.out_format,
        out_dtype=out_dtype,
        target=options.target,
        **_gpu_options(options),
        **chosen,
        **given,
    )
    save_plan(kernel, options)
    return kernel


def _gpu_options(options: Namespace) -> dict[str, Any]:
    """What a command says of a GPU's kernels; not every command has all of it. Raises UsageError."""
    wanted = {"tokens": None, "schedule": None, "interpret": False, "autotune": False}
    given = {name: getattr(options, name, default) for name, default in wanted.items()}
    said = [f"--{name}" for name, default in wanted.items() if given[name] != default]
    if said and options.target == "cpu":
        raise UsageError(
            f"{said[0]} is for GPU targets, the target is cpu",
            place="sparsecc",
            help="name one: --target sm_90, or --target gpu for the GPU that is present",
        )
    return given


def mlir_kernel(options: Namespace, chosen: dict[str, Any]) -> Kernel:
    """The kernel of an .mlir file. ``chosen``: how a plan is found."""
    from sparsecc import api

    kernel = api.compile_mlir(
        mlir_source(options),
        entry=options.entry,
        target=options.target,
        **_gpu_options(options),
        **chosen,
    )
    save_plan(kernel, options)
    return kernel


def mlir_source(options: Namespace) -> str:
    """The program of stdin, or the name of its file. Raises UsageError, FileError."""
    ignored = [
        flag
        for flag, value in (
            ("--format", options.format),
            ("--dtype", options.dtype),
            ("--out-format", options.out_format),
            ("--out-dtype", options.out_dtype),
        )
        if value
    ]
    if ignored:
        raise UsageError(
            f"{ignored[0]} does not go with an .mlir file",
            place="sparsecc",
            help="its types say the formats",
        )
    source = options.program
    if source == "-":
        source = sys.stdin.read()
    elif not Path(source).is_file():
        raise FileError("there is no such file", place=source)
    return source


def specs(
    program: str,
    formats: dict[str, str],
    dtypes: dict[str, str],
    shapes: dict[str, tuple[int | None, ...]],
    known: set[str],
    usual: str = "f64",
) -> dict[str, Any]:
    """What --format, --dtype and --shape say of the operands that no file is given for. ``usual``: the type where
    nothing says it."""
    from sparsecc import api

    ranks = operand_ranks(program)
    for option, names in (("--format", formats), ("--dtype", dtypes), ("--shape", shapes)):
        for name in names:
            if name and name not in ranks:
                raise UsageError(
                    f"{option} names {name!r}, which the expression does not read",
                    place="sparsecc",
                    help=f"it reads {', '.join(sorted(ranks))}",
                )
    found: dict[str, Any] = {}
    for name, rank in ranks.items():
        if name in known:
            continue
        shape = shapes.get(name, (None,) * rank)
        if len(shape) != rank:
            raise UsageError(
                f"--shape gives {name!r} {len(shape)} extents, but it has {rank}", place="sparsecc"
            )
        format = formats.get(name, "dense")
        format = format if format == OPEN else str(check_format(format, rank))
        found[name] = api.Spec(shape, dtypes.get(name, dtypes.get("", usual)), format)
    return found


def operand_ranks(program: str) -> dict[str, int]:
    """The operands that an expression reads, and how many indices each has."""
    from sparsecc.frontends.ast import Access, Scalar, walk
    from sparsecc.frontends.index_notation import parse

    ranks: dict[str, int] = {}
    written: set[str] = set()
    for statement in parse(program).statements:
        for node in walk(statement.expr):
            if isinstance(node, Access | Scalar) and node.name not in written:
                rank = len(node.indices) if isinstance(node, Access) else 0
                ranks.setdefault(node.name, rank)
        written.add(statement.target.name)
    return ranks


def _check_extents(program: str, operands: dict[str, Any], texts: list[str]) -> None:
    """--extent: what the operands' shapes must say of an index."""
    if not texts:
        return
    from sparsecc.frontends.ast import Access, walk
    from sparsecc.frontends.index_notation import parse

    extents = pairs(texts, "an extent INDEX=NUMBER")
    for statement in parse(program).statements:
        for node in walk(statement.expr):
            shape = getattr(operands.get(getattr(node, "name", "")), "shape", ())
            if not isinstance(node, Access) or len(shape) != len(node.indices):
                continue
            for index, found in zip(map(str, node.indices), shape, strict=True):
                if extents.get(index, str(found)) != str(found):
                    raise UsageError(
                        f"index {index!r} is {found} in {node.name}, but the command "
                        f"line says {extents[index]}",
                        place="sparsecc",
                    )


# -- results -----------------------------------------------------------------------------------


def _result_name(program: str) -> str:
    match = re.match(r"\s*([A-Za-z]\w*)", program.rpartition(";")[2] or program)
    return "result" if program.endswith(".mlir") or match is None else match[1].rstrip("_")


def _check_output(path: Path) -> None:
    """Refuse an output that can't be written before anything is computed."""
    if not path.parent.is_dir():
        raise FileError("there is no such folder", place=str(path.parent))
    if path.is_dir():
        raise FileError("this is a folder", place=str(path))


def _time(kernel: Kernel, operands: dict[str, Any], count: int) -> None:
    samples: list[float] = []
    for _ in range(count):
        start = perf_counter()
        kernel.call(operands)
        samples.append((perf_counter() - start) * 1e3)
    stages = ", ".join(f"{stage} {ms:.2f}" for stage, ms in kernel.times.items())
    note(f"compile: {sum(kernel.times.values()):.2f} ms ({stages})")
    note(f"run: {median(samples):.3f} ms median of {count}, {min(samples):.3f} at best")
