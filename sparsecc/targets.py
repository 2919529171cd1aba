"""Targets as data: what a machine can do, which shapes and types it takes, and how fast it is.

Code asks ``target.can(TargetAbility.SPARSE_MMA_2_4)``; it never compares names. A rate says where
it comes from: plan with 0.8 to 0.9 of a data sheet's bandwidth and 0.65 to 0.8 of its operations.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import cast

from sparsecc.diagnostics import TargetError, did_you_mean


class TargetAbility(Enum):
    """What code generation may ask of a target."""

    LOOPS = "runs scalar and vector loops, made by LLVM"
    TILES = "runs block-shaped programs, made by Triton"
    MMA = "warp-level matrix instructions (mma)"
    SPARSE_MMA_2_4 = "the same on 2:4 operands with metadata in registers (mma.sp)"
    WGMMA = "matrix instructions of four warps, operands in shared memory (wgmma)"
    WGMMA_SPARSE = "the same on 2:4 operands (wgmma.mma_async.sp)"
    BULK_COPY = "asynchronous bulk copies of tensors into shared memory (TMA)"
    TMEM = "tensor memory beside the registers (tcgen05)"
    TMEM_SPARSE_MMA = "2:4 matrix instructions with metadata in tensor memory (tcgen05.mma.sp)"
    FP8 = "matrix instructions on 8-bit floats"


@dataclass(frozen=True)
class Rate:
    """A number with its unit and where it comes from: ``data sheet``, ``measured``, ``assumed``."""

    value: float
    unit: str
    origin: str

    def __str__(self) -> str:
        return f"{self.value:g} {self.unit} ({self.origin})"


@dataclass(frozen=True)
class MatrixShape:
    """The tile of one matrix instruction; a 2:4 operand stores half of ``k``."""

    instruction: str
    m: int
    n: int
    k: int
    dtype: str
    sparse: bool = False


@dataclass(frozen=True)
class Target:
    """A machine to compile for. ``rates`` are empty where nobody has measured."""

    name: str
    title: str
    backend: str
    abilities: frozenset[TargetAbility]
    dtypes: frozenset[str]
    shapes: tuple[MatrixShape, ...] = ()
    rates: tuple[tuple[str, Rate], ...] = ()
    generates: bool = False
    """Whether this version generates code for it; the data alone serves cost models already."""

    def can(self, ability: TargetAbility) -> bool:
        """Whether the target has an ability."""
        return ability in self.abilities

    def rate(self, name: str) -> Rate | None:
        """A rate by name, None where it is not known."""
        return dict(self.rates).get(name)

    def matrix_shapes(self, dtype: str, *, sparse: bool) -> tuple[MatrixShape, ...]:
        """The matrix instructions that take operands of a type."""
        return tuple(s for s in self.shapes if s.dtype == dtype and s.sparse == sparse)


class UnknownTarget(TargetError):
    """A target name that is not in the table."""

    text = "there is no target {name!r}"
    help_text = "a target is a name: see 'sparsecc targets'"


class TargetRefused(TargetError):
    """A machine that exists, and that gets no code here for a reason."""

    text = "{name} gets no code: {reason}"


class DeviceTooOld(TargetError):
    """Code for a newer GPU than the one that is there."""

    text = "code for {target} does not run on {device} (compute capability {major}.{minor}), which is older"
    help_text = "compile for target='gpu', which means the GPU that is present"


class OtherDevice(TargetError):
    """Code that only its own generation runs."""

    text = "code for {target} does not run on {device} (compute capability {major}.{minor})"
    help_text = "compile for target='gpu', which means the GPU that is present"


class NoCodeForTarget(TargetError):
    """A known target that this version has no backend for."""

    text = "this version does not generate code for {name} ({title}) yet"
    help_text = "compile for the target 'cpu'"


_CPU_DTYPES = frozenset("bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 c64 c128".split())
_GPU_DTYPES = frozenset("bool i8 i16 i32 i64 u8 f16 bf16 f32 f64".split())

_MMA = (
    MatrixShape("mma", 16, 8, 16, "f16"),
    MatrixShape("mma", 16, 8, 16, "bf16"),
    MatrixShape("mma", 16, 8, 32, "i8"),
    MatrixShape("mma.sp", 16, 8, 32, "f16", sparse=True),
    MatrixShape("mma.sp", 16, 8, 32, "bf16", sparse=True),
    MatrixShape("mma.sp", 16, 8, 64, "i8", sparse=True),
)
# Of the legal widths (multiples of 8 up to 256) those whose 2:4 form has run.
_WGMMA = tuple(
    MatrixShape(instruction, 64, n, k, dtype, sparse)
    for instruction, k, sparse in (("wgmma", 16, False), ("wgmma.sp", 32, True))
    for n in (64, 128, 256)
    for dtype in ("f16", "bf16")
)


def _gpu_rates(
    half: float,
    byte: float,
    bandwidth: float,
    clock: float,
    processors: int,
    shared: int,
    *more: tuple[str, Rate],
) -> tuple[tuple[str, Rate], ...]:
    return (
        ("half_flops", Rate(half * 1e12, "flop/s", "data sheet")),
        ("byte_ops", Rate(byte * 1e12, "op/s", "data sheet")),
        ("bandwidth", Rate(bandwidth * 1e12, "B/s", "data sheet")),
        ("clock", Rate(clock * 1e9, "Hz", "assumed")),
        ("processors", Rate(processors, "SM", "data sheet")),
        ("shared_memory", Rate(shared * 1024, "B/block", "data sheet")),
        ("issue_lanes", Rate(128, "lane/clock/SM", "data sheet")),
        ("popcounts", Rate(16, "1/clock/SM", "data sheet")),
        *more,
    )


_A = TargetAbility
_AMPERE = frozenset({_A.TILES, _A.MMA, _A.SPARSE_MMA_2_4})

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target(
            "cpu",
            "this machine's processor",
            "cpu",
            frozenset({_A.LOOPS}),
            _CPU_DTYPES,
            generates=True,
        ),
        Target(
            "sm_80",
            "NVIDIA Ampere (A100)",
            "triton",
            _AMPERE,
            _GPU_DTYPES,
            _MMA,
            _gpu_rates(312, 624, 2.04, 1.41, 108, 163),
            generates=True,
        ),
        Target(
            "sm_90",
            "NVIDIA Hopper (H200)",
            "triton",
            _AMPERE | {_A.WGMMA, _A.WGMMA_SPARSE, _A.BULK_COPY, _A.FP8},
            _GPU_DTYPES | {"f8e4m3", "f8e5m2"},
            _MMA + _WGMMA,
            _gpu_rates(
                989,
                1979,
                4.8,
                1.755,
                132,
                227,
                ("copy_bandwidth", Rate(4.3e12, "B/s", "measured")),
                ("read_bandwidth", Rate(4.09e12, "B/s", "measured")),
            ),
            generates=True,
        ),
        # wgmma is Hopper's alone; 2:4 in tensor memory assembles, but nobody has run it yet.
        Target(
            "sm_100",
            "NVIDIA Blackwell (B200)",
            "triton",
            _AMPERE | {_A.BULK_COPY, _A.TMEM, _A.TMEM_SPARSE_MMA, _A.FP8},
            _GPU_DTYPES | {"f8e4m3", "f8e5m2"},
            _MMA,
            _gpu_rates(2250, 4500, 8.0, 1.85, 148, 227),
            generates=True,
        ),
    )
}


ALIASES = {"sm_86": "sm_80", "sm_87": "sm_80", "sm_89": "sm_80"}
"""Machines that run the code of another target as it is."""

_CONSUMER = "its tensor cores take neither wgmma nor tcgen05 instructions, and nothing has been tested on it"
REFUSED = {
    "sm_70": "it has no 2:4 matrix instructions and is older than what Triton supports well",
    "sm_75": "it has no 2:4 matrix instructions and no asynchronous copies",
    "sm_103": "the code of sm_100 is for that chip alone, and nothing has been tested on this one",
    "sm_120": _CONSUMER,
    "sm_121": _CONSUMER,
}


def known_target(name: str) -> Target:
    """The target of a name. Raises UnknownTarget, TargetRefused."""
    if not isinstance(cast(object, name), str):
        raise UnknownTarget(name=name)
    if name in REFUSED:
        raise TargetRefused(
            name=name, reason=REFUSED[name], help="compile for sm_80: the driver translates its PTX"
        )
    name = ALIASES.get(name, name)
    if name not in TARGETS:
        is_gpu = name.lower().split(":")[0] in ("cuda", "nvidia", "triton", "ptx")
        known = did_you_mean(name, [*TARGETS, *ALIASES, "gpu"])
        gpus = "the GPU that is present is called 'gpu'; 'sparsecc targets' lists the others"
        raise UnknownTarget(name=name, help=gpus if is_gpu else known)
    return TARGETS[name]


def code_target(name: str) -> Target:
    """The same for a compiler: raises NoCodeForTarget where the target is data only."""
    target = known_target(name)
    if not target.generates:
        raise NoCodeForTarget(name=name, title=target.title)
    return target


def device_target(capability: tuple[int, int]) -> str:
    """The target whose code a GPU of a compute capability runs best. Raises TargetRefused."""
    major, minor = capability
    name = f"sm_{major}{minor}"
    if major == 8:
        return "sm_80"
    if name in TARGETS:
        return name
    reason = REFUSED.get(name, "nothing is known of it")
    raise TargetRefused(
        name=name, reason=reason, help="compile for sm_80: the driver translates its PTX"
    )


def runs_as(target: str, device: str, capability: tuple[int, int]) -> str:
    """How a GPU runs a target's code: ``cubin``, or ``ptx`` where its driver must translate first.

    Raises DeviceTooOld, OtherDevice."""
    name = known_target(target).name
    number = name.removeprefix("sm_")
    wanted = (int(number[:-1]), int(number[-1]))
    major, minor = capability
    if capability < wanted:
        raise DeviceTooOld(target=name, device=device, major=major, minor=minor)
    if capability == wanted or (wanted[0] == 8 and capability[0] == 8):
        return "cubin"
    if wanted[0] == 8:
        return "ptx"  # newer targets use instructions of their own chip alone
    raise OtherDevice(target=name, device=device, major=major, minor=minor)
