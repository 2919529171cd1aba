"""Kernels of ``wgmma.mma_async.sp``: 2:4 weights from memory to registers, X through swizzled shared memory.

A schedule's numbers:

* ``warpgroups`` of four warps, each of which adds up ``row_tiles`` tiles of 64 rows x ``tokens``;
* ``specialised``: 1, each warpgroup runs on its own, fed by one warp that only copies; 0, all warps run in step;
* ``steps`` of k in a chunk (64 bytes of X each), and ``stages``, chunks of X in shared memory;
* ``split``: parts of K, summed by the last to arrive; ``group``: token blocks that run side by side;
* ``programs``: 0, one a block; else at most so many, which go on to further blocks;
* ``registers``: of a thread, at most; 0, the compiler's choice.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparsecc.backends.triton.contraction import Contraction
from sparsecc.backends.triton.epilogue_text import helpers
from sparsecc.backends.triton.fragment_text import (
    FENCE,
    arguments,
    constants,
    head,
    integers,
    layouts,
)
from sparsecc.backends.triton.legality import LegalityError, fits_shared, known, need
from sparsecc.backends.triton.warpgroup_asm import REGISTERS, Shape, load_text, multiply_text
from sparsecc.backends.triton.warpgroup_body import OWNER_REGISTERS, in_step, specialised
from sparsecc.backends.triton.warpgroup_text import (
    CELL,
    Plan,
    fill_text,
    finish_text,
    kernel_constants,
    kernel_layouts,
    place_text,
    weight_text,
)
from sparsecc.diagnostics import UnsupportedError
from sparsecc.kernel import TileSource

FAMILY = "warpgroup"
DEFAULTS = {"split": 1, "group": 8, "programs": 0, "registers": 0}
PARAMETERS = ("warpgroups", "specialised", "row_tiles", "tokens", "steps", "stages", *DEFAULTS)


class NoWarpgroupKernel(UnsupportedError):
    """A contraction that these instructions don't take."""

    text = "kernel {kernel} can't use wgmma.mma_async.sp: {message}"


def emit(contraction: Contraction, schedule: Mapping[str, int]) -> TileSource:
    """The kernel of a contraction under a schedule. Raises NoWarpgroupKernel, LegalityError."""
    plan = _plan(contraction, schedule)
    c, split = contraction, plan.split
    tokens_k = list(plan.box)
    box = [1, *tokens_k] if c.batched[0] else tokens_k
    kind = {"f16": "fp16", "bf16": "bf16", "i8": "i8"}[c.dtype]
    given = arguments(c, split, f"tensordesc<{kind}[{', '.join(map(str, box))}]>")
    return TileSource(
        entry=c.name,
        text=_text(plan, schedule, [name for name, _, _ in given]),
        gluon=True,
        arguments=tuple((name, type_) for name, type_, _ in given),
        roles=tuple(role for _, _, role in given),
        aligned=tuple(
            name for name, type_, _ in given if type_.startswith("*") and not name.startswith("e_")
        ),
        warps=plan.warps,
        registers=schedule.get("registers") or None,
        instructions=("IGMMA.SP" if c.dtype == "i8" else "HGMMA.SP",),
    )


def _plan(c: Contraction, schedule: Mapping[str, int]) -> Plan:
    """Check what can't be, each with what to do instead."""
    known(schedule, FAMILY, PARAMETERS)
    for wrong, message, help_text in (
        (
            c.target != "sm_90",
            f"{c.target} has none of them",
            "they are sm_90's; compile for it, or use another family",
        ),
        (
            c.weight != "2:4",
            f"W is {c.weight}",
            "the ring family has kernels for a residual beside 2:4",
        ),
        (c.batched[1] and not c.batched[0], "W has a batch dimension and X has none", "repeat X"),
        (
            not c.aligned,
            "rows of X don't begin at multiples of 16 bytes, which bulk copies need",
            "pad X, or use the staged family",
        ),
        (
            c.dtype == "i8" and c.x_order == "kt",
            "8-bit X must be contiguous along k",
            "store X as [t][k], or use the staged family",
        ),
    ):
        if wrong:
            raise NoWarpgroupKernel(message, kernel=c.name, help=help_text)
    numbers = {**DEFAULTS, **schedule}
    shape = Shape(
        c.dtype,
        _one_of(numbers, "row_tiles", (1, 2, 4)),
        _one_of(numbers, "tokens", (64, 128, 192, 256)),
        _one_of(numbers, "steps", (2, 4, 8)),
        c.x_order == "kt",
    )
    need(numbers, FAMILY, "specialised", 0)
    plan = Plan(
        c,
        shape,
        _one_of(numbers, "warpgroups", (1, 2, 3) if numbers["specialised"] else (1, 2)),
        bool(_one_of(numbers, "specialised", (0, 1))),
        need(numbers, FAMILY, "stages", 2),
        need(numbers, FAMILY, "split"),
        need(numbers, FAMILY, "group"),
        need(numbers, FAMILY, "programs", 0),
    )
    if shape.steps * shape.row_tiles * 4 > REGISTERS:
        raise LegalityError(
            f"a chunk of {shape.steps} steps x {shape.row_tiles} row tiles has more values than {REGISTERS} registers",
            family=FAMILY,
            help="take fewer steps or row tiles: their product is at most 8",
        )
    registers = shape.pieces * REGISTERS + 2 * shape.steps * shape.row_tiles * 4
    most = (OWNER_REGISTERS[plan.warpgroups] if plan.specialised else None) or 255
    most = numbers["registers"] or most
    if registers > most - 8:
        raise LegalityError(
            f"sums and weight take {registers} registers of a thread, and there are {most}",
            family=FAMILY,
            help="take fewer tokens, row tiles, steps or warpgroups",
        )
    # A launch divides 65536 registers among all warps before the copying one gives its own away, and ptxas wants
    # each instruction's operands within that.
    launched = 65536 // (128 * (plan.warpgroups + 1)) if plan.specialised else 255
    if shape.tokens // 2 + 31 > launched:
        raise LegalityError(
            f"an instruction on {shape.tokens} tokens takes {shape.tokens // 2 + 31} registers, "
            f"and {plan.warpgroups} warpgroups start with {launched}",
            family=FAMILY,
            help="take fewer tokens or warpgroups",
        )
    if plan.programs and not plan.specialised:
        raise LegalityError(
            "programs go on to further blocks only where a warp copies ahead",
            family=FAMILY,
            help="give specialised=1",
        )
    # Beside the stages: the transposition of a piece of the result in each block of sums, and the barriers.
    piece = (
        64
        * 16
        * plan.warps
        * (4 if c.epilogue else {"f16": 2, "bf16": 2, "i8": 1}.get(c.out_dtype, 4))
    )
    size = plan.stages * shape.stage_bytes + plan.owners * piece + 1024
    fits_shared(c.target, FAMILY, size, "take fewer stages, tokens or steps")
    return plan


def _one_of(schedule: Mapping[str, int], name: str, values: tuple[int, ...]) -> int:
    value = need(schedule, FAMILY, name, 0)
    if value not in values:
        raise LegalityError(
            f"{name} is {value}",
            family=FAMILY,
            help=f"{name} is one of {', '.join(map(str, values))}",
        )
    return value


def _text(p: Plan, schedule: Mapping[str, int], names: list[str]) -> str:
    c = p.contraction
    sentences = [
        "A warpgroup multiplies 64 rows at a time: W from its registers, where each lane loads its own 16 bytes,",
        "X from shared memory, where bulk copies put it swizzled as the instruction reads it.",
    ]
    top = head(c, FAMILY, schedule, sentences, bulk=True)
    load, load_operands = load_text(p.shape)
    multiply, multiply_operands = multiply_text(p.shape)
    texts = (
        "\n# Operands: values 0-31, metadata 32-63, then addresses and the units left.\n"
        f'LOAD = gl.constexpr("""{load}""")\n'
        f"LOAD_OPERANDS = gl.constexpr({_operands(load_operands)})\n"
        "# Operands: the sums, the sums before, values, metadata, the stage.\n"
        f'MULTIPLY = gl.constexpr("""{multiply}""")\n'
        f"MULTIPLY_OPERANDS = gl.constexpr({_operands(multiply_operands)})\n"
    )
    parts = [
        top,
        constants(
            [
                *kernel_constants(p),
                *([("OWNERS", p.owners, "blocks of sums")] if p.owners > 1 else []),
            ]
        ),
        layouts(kernel_layouts(p)),
        texts,
        FENCE + CELL if p.split > 1 else "",
        helpers(c),
        place_text(p),
        weight_text(p),
        fill_text(p),
        finish_text(p),
        specialised(p, names) if p.specialised else in_step(p, names),
        _launch(p),
    ]
    return "".join(parts).replace("\n\n\n\n", "\n\n\n")


def _operands(constraints: str) -> str:
    """Constraints, runs of one kind said as such."""
    runs: list[tuple[str, int]] = []
    for item in constraints.split(","):
        if runs and runs[-1][0] == item:
            runs[-1] = (item, runs[-1][1] + 1)
        elif item.isdigit() and runs and runs[-1][0] == "tied":
            runs[-1] = ("tied", runs[-1][1] + 1)
        else:
            runs.append(("tied" if item.isdigit() else item, 1))
    said = [
        f"[str(i) for i in range({n})]" if kind == "tied" else f'["{kind}"] * {n}'
        for kind, n in runs
    ]
    return f'",".join({" + ".join(said)})'


def _launch(p: Plan) -> str:
    """``grid`` and ``work``."""
    names = integers(p.contraction)
    blocks = f"-(-N // {p.rows}) * -(-M // {p.shape.tokens})" + (
        " * batches" if p.contraction.batched[0] else ""
    )
    items = blocks if p.split == 1 else f"{blocks} * {p.split}"
    count = f"min({p.programs}, {items})" if p.programs else items
    text = (
        f"\n\ndef grid({names}):\n"
        f'    """Programs: blocks of {p.rows} rows and {p.shape.tokens} tokens'
        f'{f", {p.split} parts of K each" if p.split > 1 else ""}."""\n'
        f"    return ({count}, 1, 1)\n"
    )
    if p.split > 1:
        text += (
            f"\n\ndef work({names}):\n"
            '    """Bytes of the partial sums and of the arrival counters (zero before and after)."""\n'
            f"    blocks = {blocks}\n"
            f'    return {{"partial": blocks * {p.split * p.cells * 4}, "counters": blocks * {p.owners * 4}}}\n'
        )
    return text
