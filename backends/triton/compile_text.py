"""The text of a kernel to machine code, in this process, for any target and without a GPU.

The compiler may end the process that it runs in; ``compile_process`` keeps it away from the user's.
"""

from __future__ import annotations

import re
import tempfile
from time import perf_counter
from typing import Any

from sparsecc.backends.triton.text_module import load_text, member
from sparsecc.backends.triton.toolchain import triton_module, usage
from sparsecc.diagnostics import InternalError, UnsupportedError
from sparsecc.kernel import Compiled, TensorMap, TileSource
from sparsecc.targets import known_target

TENSOR_MEMORY = 512
"""Columns of tensor memory that a program may have, on targets that have it."""
_BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}
# Triton numbers element types as the device does; the driver's numbers differ in three of them.
_HOST_TYPES = {8: 10, 9: 8, 10: 9}


class TensorMapMissing(UnsupportedError):
    text = "{target} has no bulk copies, but kernel {kernel} takes a tensor map"
    help_text = "compile for sm_90 or newer"


class TensorMemoryFull(UnsupportedError):
    text = "kernel {kernel} needs {columns} columns of tensor memory, and {target} has {limit}"
    help_text = "choose a schedule with fewer tokens or rows a program (kernel.explain() lists the legal ones)"


def compile_text(source: TileSource, target: str) -> Compiled:
    """Compile a kernel here. Raises what Triton raises; an abort of LLVM ends the process."""
    start = perf_counter()
    triton, compiler = triton_module("triton"), triton_module("triton.compiler")
    number = int(known_target(target).name.removeprefix("sm_"))
    device = triton_module("triton.backends.compiler").GPUTarget("cuda", number, 32)
    function = member(load_text(source), source.entry)
    given = dict(source.arguments)
    names: list[str] = list(function.arg_names)
    if set(given) != set(names):
        raise InternalError(
            f"kernel {source.entry} takes {', '.join(names)}, but its arguments are {', '.join(given)}"
        )
    signature = {name: _signature_type(given[name], source.gluon) for name in names}
    hints = {(names.index(n),): [["tt.divisibility", 16]] for n in source.aligned}
    options: dict[str, Any] = {"num_warps": source.warps, "num_stages": source.stages}
    if source.registers is not None:
        options["maxnreg"] = source.registers
    made = (_gluon_source() if source.gluon else compiler.ASTSource)(function, signature, {}, hints)
    knobs = triton.knobs
    # Our own cache holds the results; Triton's would only grow.
    with tempfile.TemporaryDirectory(prefix="sparsecc-") as folder, knobs.cache.scope():
        knobs.cache.dir = folder
        with knobs.compilation.scope():
            knobs.compilation.always_compile = True
            done = compiler.compile(made, target=device, options=options)
    return _result(source, target, done, triton.__version__, start)


def _gluon_source() -> Any:
    return triton_module("triton.experimental.gluon._runtime").GluonASTSource


def _result(source: TileSource, target: str, done: Any, version: str, start: float) -> Compiled:
    cubin, ptx, metadata = done.asm["cubin"], done.asm["ptx"], done.metadata
    registers, spills = usage(cubin)
    columns = int(getattr(metadata, "tmem_size", None) or 0)
    if columns > TENSOR_MEMORY:  # Triton leaves a trap in its place
        name = source.entry
        raise TensorMemoryFull(kernel=name, columns=columns, target=target, limit=TENSOR_MEMORY)
    described: list[Any] = getattr(metadata, "tensordesc_meta", None) or []
    maps = tuple(map(_tensor_map, described))
    wanted = [kind for _, kind in source.arguments if kind.startswith("tensordesc")]
    if len(maps) != len(wanted):
        raise TensorMapMissing(target=target, kernel=source.entry)
    return Compiled(
        source=source,
        target=target,
        symbol=metadata.name,
        cubin=cubin,
        ptx=ptx,
        threads=metadata.num_warps * 32,
        shared=metadata.shared,
        registers=registers,
        spills=spills,
        parameters=parameter_sizes(ptx, metadata.name),
        tensor_maps=maps,
        scratch=metadata.global_scratch_size,
        programs=metadata.num_ctas,
        compiler=f"triton {version}",
        milliseconds=(perf_counter() - start) * 1e3,
    )


def _tensor_map(metadata: dict[str, Any]) -> TensorMap:
    kind = int(metadata["elem_type"])
    return TensorMap(
        tuple(metadata["block_size"]),
        int(metadata["elem_size"]),
        _HOST_TYPES.get(kind, kind),
        int(metadata["swizzle"]),
    )


def _signature_type(kind: str, gluon: bool) -> str:
    """A type as Triton's signatures spell it: Gluon's tensor maps say their layout too."""
    if not (gluon and kind.startswith("tensordesc") and kind.endswith("]>")):
        return kind
    gluon_language = triton_module("triton.experimental.gluon.language")
    dtype_of = triton_module("triton.language").str_to_ty
    match = re.fullmatch(r"tensordesc<(\w+)\[([\d, ]+)\]>", kind)
    if match is None:
        raise InternalError(f"the type {kind!r} can't be read")
    block = [int(n) for n in match[2].split(",")]
    layout = gluon_language.NVMMASharedLayout.get_default_for(block, dtype_of(match[1], None))
    return f"{kind[:-1]},{layout!r}>"


def parameter_sizes(ptx: str, symbol: str) -> tuple[int, ...]:
    """Bytes of each parameter of an entry, as PTX declares them."""
    match = re.search(rf"\.entry {re.escape(symbol)}\((.*?)\n?\)", ptx, re.DOTALL)
    if match is None:
        raise InternalError(f"there is no entry {symbol} in its PTX")
    sizes: list[int] = []
    for line in re.findall(r"\.param ([^,]*)", match[1]):
        bits = re.search(r"\.[subf](\d+)\b", line)
        count = re.search(r"\[(\d+)\]", line)
        assert bits is not None, line
        sizes.append(_BYTES[bits[1]] * (int(count[1]) if count else 1))
    return tuple(sizes)
