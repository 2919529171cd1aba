"""What a backend hands to the runtime: machine code by name, and the plan that runs it. Plain data, no IR.

A plan works on numbered tensors: the operands first, then what each step makes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

LARGEST = 2**31 - 4096
"""The largest number that a GPU kernel counts to: its last block, of 4096 at most, ends within 32 bits."""
GRID = (2**31 - 1, 65535, 65535)
"""The most programs along each axis of a grid."""


@dataclass(frozen=True)
class Operand:
    """A tensor that a plan takes: extents (None: any), element type, and format as spelled by Format."""

    name: str
    shape: tuple[int | None, ...]
    dtype: str
    format: str


@dataclass(frozen=True)
class TileSource:
    """A GPU kernel as text, and all that compiling and launching it takes.

    ``text`` is a Python module that runs by hand. It defines ``entry`` (a Triton or Gluon kernel whose only parameters
    are ``arguments``: every constant stands in the text), ``grid(**ints)`` from the integer arguments to the number of
    programs along each axis, and, if there are roles ``work.NAME``, ``work(**ints)`` to the bytes of each."""

    entry: str
    text: str
    gluon: bool
    arguments: tuple[tuple[str, str], ...]
    """Names and types in order, as Triton spells types: ``*fp16 *bf16 *fp32 *i8 *i32 i32 i64 fp32``, or
    ``tensordesc<fp16[128, 64]>`` for a tensor map in bulk copies' order."""
    roles: tuple[str, ...]
    """What each argument is: ``in0.values``, ``in0.positions1``, ``in0.coordinates1``, ``in0.dim0``, ``in0.stride0``
    (elements), ``in1.packed``, ``in1.offsets``, ``out.values``, ``out.dim0``, ``out.stride0``, ``work.NAME``."""
    aligned: tuple[str, ...]
    """Arguments that the code relies on to be multiples of 16 (addresses: bytes): a launch checks it."""
    warps: int
    stages: int = 1
    registers: int | None = None
    """The most registers of a thread, where the code needs a limit."""
    instructions: tuple[str, ...] = ()
    """Machine instructions that it promises, as the disassembler names them: ``HMMA.SP``, ``HGMMA``."""


@dataclass(frozen=True)
class TensorMap:
    """How bulk copies see a ``tensordesc`` argument: what the driver needs to encode one."""

    block: tuple[int, ...]
    """Elements of the box of one copy, outer to inner."""
    element_bytes: int
    element_type: int
    """A number of CUtensorMapDataType."""
    swizzle: int
    """A number of CUtensorMapSwizzle."""


@dataclass(frozen=True)
class Compiled:
    """A TileSource compiled for a target: all that a launch needs, and what a reader asks about it."""

    source: TileSource
    target: str
    symbol: str
    cubin: bytes
    ptx: str
    threads: int
    """Threads of a program, warps that the code adds for itself included."""
    shared: int
    """Bytes of dynamic shared memory."""
    registers: int
    spills: int
    """Bytes of local memory of a thread: spilled registers and stack."""
    parameters: tuple[int, ...]
    """Bytes of each parameter of the machine code: those of ``arguments``, then what the compiler adds."""
    tensor_maps: tuple[TensorMap, ...] = ()
    """Of the ``tensordesc`` arguments, in order."""
    scratch: int = 0
    """Bytes of global scratch memory of one program."""
    programs: int = 1
    """Programs of a cluster."""
    compiler: str = ""
    milliseconds: float = 0.0


@dataclass(frozen=True)
class Convert:
    """Tensor ``dest`` is ``source`` in another format; ``reason`` says who wants it."""

    source: int
    dest: int
    format: str
    reason: str


@dataclass(frozen=True)
class Reinterpret:
    """Tensor ``dest`` has the arrays of ``source`` under another format: seen by its levels (no ``shape``), or by
    dimensions again, whose extents are those of other tensors' dimensions."""

    source: int
    dest: int
    format: str
    shape: tuple[tuple[int, int], ...] | None


@dataclass(frozen=True)
class Launch:
    """Tensor ``dest`` is what a kernel makes of ``inputs``.

    ``fill`` is what a dense result starts from where there is no ``init``: an integer, or a real and an
    imaginary part. ``extents`` are groups of dimensions that have one extent, by the name of their
    index: pairs of a tensor's number and a dimension. ``shape`` is the group of each dimension of the
    result. ``roles`` say what each argument word is. ``bound``: inputs whose stored entries together bound
    the result's (None: the kernel ``<kernel>_count`` counts them first)."""

    kernel: str
    inputs: tuple[int, ...]
    init: int | None
    fill: tuple[float, float] | tuple[int]
    dest: int
    assembly: str
    pattern: int | None
    covers: bool
    bound: tuple[int, ...] | None
    extents: tuple[tuple[str, tuple[tuple[int, int], ...]], ...]
    shape: tuple[int, ...]
    static: tuple[int | None, ...]
    """Extents of the result that its type fixes."""
    format: str
    dtype: str
    roles: tuple[str, ...]
    count_roles: tuple[str, ...]
    source: str
    order: tuple[str, ...]
    """The indices of its loops, outer to inner."""
    reason: str
    """Why the result has its format."""


class _Launched:
    """What a step that holds a launch says of its result."""

    launch: Launch

    @property
    def dest(self) -> int:
        return self.launch.dest

    @property
    def shape(self) -> tuple[int, ...]:
        return self.launch.shape

    @property
    def format(self) -> str:
        return self.launch.format


@dataclass(frozen=True)
class TileLaunch(_Launched):
    """The same by a GPU kernel: ``launch`` says what goes in and comes out, ``source`` is the code."""

    launch: Launch
    source: TileSource
    packs: tuple[tuple[int, str], ...]
    """Inputs that the kernel reads packed, and the layout of each: ``2:4``."""
    sizes: tuple[int, int, int] | None
    """Of a contraction: the groups of dimensions that count its tokens, rows and reduction, for which it is made."""
    form: str
    """``blocks`` or ``fragments``."""
    schedule: str
    """What ``source`` was made with, as its attribute prints."""
    space: tuple[str, ...]
    """All legal schedules, that one included."""


@dataclass(frozen=True)
class Library(_Launched):
    """The same by a library, as ``sparsecc.selection.engines`` names it: ``launch`` says what goes in and comes out
    (its kernel is the engine's name)."""

    launch: Launch
    engine: str
    indices: tuple[tuple[str, ...], ...]
    """What the dimensions of each input are indexed with, then those of the result."""
    sparse: int | None = None
    """The input that is not dense, where there is one."""
    packs: tuple[tuple[int, str], ...] = ()
    """Inputs that the library reads packed, and the layout of each."""


Step = Convert | Reinterpret | Launch | TileLaunch | Library


def launch_of(step: Step | None) -> Launch | None:
    """What goes into a step that computes and comes out; None of steps that do not."""
    if isinstance(step, TileLaunch | Library):
        return step.launch
    return step if isinstance(step, Launch) else None


@dataclass(frozen=True)
class Plan:
    """Steps from operands to results (numbers of tensors)."""

    operands: tuple[Operand, ...]
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    names: tuple[str, ...]

    def kernels(self) -> list[str]:
        """The functions that the steps call."""
        found: list[str] = []
        for step in self.steps:
            if isinstance(step, Launch):
                found.append(step.kernel)
                if step.count_roles:
                    found.append(f"{step.kernel}_count")
        return found

    @property
    def tiles(self) -> tuple[TileLaunch, ...]:
        """The launches of GPU kernels, in order."""
        return tuple(step for step in self.steps if isinstance(step, TileLaunch))

    @property
    def libraries(self) -> tuple[Library, ...]:
        """The calls of libraries, in order."""
        return tuple(step for step in self.steps if isinstance(step, Library))

    def to_json(self) -> dict[str, Any]:
        steps = [{"kind": type(s).__name__, **asdict(s)} for s in self.steps]
        return {**asdict(self), "steps": steps}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Plan:
        steps = tuple(
            _step(s["kind"], {k: v for k, v in s.items() if k != "kind"}) for s in data["steps"]
        )
        operands = tuple(_filled(Operand, o) for o in data["operands"])
        return Plan(operands, steps, _tuples(data["results"]), _tuples(data["names"]))


_KINDS = {
    "Convert": Convert,
    "Reinterpret": Reinterpret,
    "Launch": Launch,
    "TileLaunch": TileLaunch,
    "Library": Library,
}


def _step(kind: str, fields: dict[str, Any]) -> Any:
    parts = {"launch": Launch, "source": TileSource}
    if kind in ("TileLaunch", "Library"):
        fields = {k: _filled(parts[k], v) if k in parts else v for k, v in fields.items()}
    return _filled(_KINDS[kind], fields)


def _filled(kind: Any, fields: Mapping[str, Any]) -> Any:
    return kind(**{key: _tuples(value) for key, value in fields.items()})


def _tuples(value: Any) -> Any:
    """JSON's lists back as tuples."""
    return tuple(map(_tuples, cast("list[Any]", value))) if isinstance(value, list) else value
