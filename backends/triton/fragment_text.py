"""Pieces of text that the kernels on packed weights share: layouts, the head, the end of a kernel, the launch.

Each piece is Gluon text in which layouts and sizes are named constants. The end of a kernel takes the sums of a block
as a tensor ``total`` and knows, from the text before it, ``token_block`` and ``row_block`` (and ``batch``, ``part``,
``block``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import indent

from sparsecc.backends.triton import epilogue_text
from sparsecc.backends.triton.contraction import Contraction
from sparsecc.backends.triton.epilogue_text import GLUON_TYPES, epilogue_lines

POINTERS = {"f16": "*fp16", "bf16": "*bf16", "f32": "*fp32", "i32": "*i32", "i8": "*i8"}


def bases(count: int, rank: int, dimension: int, start: int = 1) -> list[list[int]]:
    """The powers of two that count to ``count`` along one dimension of a linear layout."""
    found: list[list[int]] = []
    step = start
    while step < count * start:
        found.append([step if d == dimension else 0 for d in range(rank)])
        step *= 2
    return found


def linear_layout(
    registers: Sequence[Sequence[int]],
    lanes: Sequence[Sequence[int]],
    warps: Sequence[Sequence[int]],
    shape: Sequence[int],
) -> str:
    """A linear layout as text: which element each register, lane and warp bit moves to."""
    return (
        "gl.DistributedLinearLayout(\n"
        f"        reg_bases={[list(b) for b in registers]},\n"
        f"        lane_bases={[list(b) for b in lanes]},\n"
        f"        warp_bases={[list(b) for b in warps]},\n"
        f"        block_bases=[],\n        shape={list(shape)},\n    )"
    )


def result_layout(y_order: str, tokens: int, rows: int, warps: int) -> str:
    """A layout of ``[tokens, rows]`` in which neighbouring lanes store neighbouring elements of Y."""
    if y_order == "tn":
        across = min(32, rows)
        return f"gl.BlockedLayout([1, 1], [{32 // across}, {across}], [{warps}, 1], [1, 0])"
    down = min(32, tokens)
    return f"gl.BlockedLayout([1, 1], [{down}, {32 // down}], [1, {warps}], [0, 1])"


def constants(values: Iterable[tuple[str, int | str, str]]) -> str:
    """Named constants of a kernel's text, each with what it is."""
    lines = [f"{name} = gl.constexpr({value})  # {about}" for name, value, about in values]
    return "\n".join(lines) + "\n"


def layouts(values: Iterable[tuple[str, str, str]]) -> str:
    """Named layouts of a kernel's text, each with what it is."""
    return (
        "\n".join(
            f"# {about}\n{name} = gl.constexpr(\n    {text}\n)" for name, text, about in values
        )
        + "\n"
    )


BULK_IMPORT = "from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma\n"
BULK_NAME = 'async_load = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared\n'


def head(
    c: Contraction, family: str, schedule: Mapping[str, int], sentences: Sequence[str], bulk: bool = False
) -> str:  # fmt: skip
    """The docstring and the imports of a kernel's module (``bulk``: which uses bulk copies)."""
    said = [*c.comments] or ["Y[t,n] = X[t,k] * W[n,k]"]
    parameters = ", ".join(f"{name}={value}" for name, value in schedule.items())
    lines = [
        *said,
        "",
        f"W: {c.weight}, packed in the fragment order of mma.sp; {c.dtype}, sums in {c.accumulator}, "
        f"result in {c.out_dtype}.",
        f"X is {'[t][k]' if c.x_order == 'tk' else '[k][t]'}, Y is {'[t][n]' if c.y_order == 'tn' else '[n][t]'}"
        f"{' (batched)' if c.batched[0] else ''}. M tokens t, N rows n, sums over K.",
        f"Target {c.target}, schedule {family}: {parameters}.",
        "",
        *sentences,
    ]
    return (
        '"""' + "\n".join(lines) + '\n"""\n\n'
        f"{epilogue_text.imports(c)}"
        "from triton.experimental import gluon\n"
        "from triton.experimental.gluon import language as gl\n"
        f"{BULK_IMPORT if bulk else ''}"
        "\n# As Triton 3.6 calls it, or a later one.\n"
        'thread_barrier = getattr(gl, "thread_barrier", None) or gl.barrier\n'
        f"{BULK_NAME if bulk else ''}\n"
    )


def arguments(c: Contraction, splitk: int, x_type: str | None = None) -> list[tuple[str, str, str]]:
    """Name, type and role of each argument, in the order that all these kernels have."""
    found = [("packed", "*i32", "w.packed")]
    if c.weight == "2:4+CSR":
        found.append(("offsets", "*i32", "w.offsets"))
    found.append(("x", x_type or POINTERS[c.dtype], "x.values"))
    found += [(f"e_{name}", POINTERS[dtype], f"e:{name}.values") for name, dtype, _ in c.operands]
    found.append(("y", POINTERS[c.out_dtype], "y.values"))
    if splitk > 1:
        found += [
            ("partial", "*fp32" if c.accumulator == "f32" else "*i32", "work.partial"),
            ("counters", "*i32", "work.counters"),
        ]
    found += [("M", "i32", "tokens"), ("N", "i32", "rows"), ("K", "i32", "reduction")]
    found += [("ldx", "i64", "x.stride0"), ("ldy", "i64", "y.stride0")]
    if c.batched[0]:
        found += [
            ("batches", "i32", "batches"),
            ("x_batch", "i64", "x.batch_stride"),
            ("y_batch", "i64", "y.batch_stride"),
        ]
    return found


def integers(c: Contraction) -> str:
    """The integer arguments as the parameters of ``grid`` and ``work``."""
    return "M, N, K, ldx, ldy" + (", batches, x_batch, y_batch" if c.batched[0] else "")


ROW_BLOCKS = 32768
"""Blocks of rows along the second axis of a grid (it has room for 65535); the third axis counts such groups."""


def launch(
    c: Contraction, splitk: int, *, rows: int, tokens: int, cells: int, group: int = 1
) -> str:
    """``grid`` and ``work``: blocks of ``rows`` rows and ``tokens`` tokens, each with ``cells`` partial sums."""
    names = integers(c)
    outputs = f"-(-M // {tokens})" + (" * batches" if c.batched[0] else "")
    if group > 1:
        about = f"blocks of {tokens} tokens and {rows} rows{', parts of K' if splitk > 1 else ''}"
        grid = f"({outputs} * row_blocks, {splitk}, 1)"
        blocks = "parts"
    else:
        about = f"blocks of {tokens} tokens{' times parts of K' if splitk > 1 else ''}; blocks of {rows} rows"
        about += f", groups of {ROW_BLOCKS} of those"
        parts = f" * {splitk}" if splitk > 1 else ""
        grid = f"({outputs}{parts}, min(row_blocks, {ROW_BLOCKS}), -(-row_blocks // {ROW_BLOCKS}))"
        blocks = f"parts // {splitk} * rows * groups"
    text = (
        f"\n\ndef grid({names}):\n"
        f'    """Programs: {about}."""\n'
        f"    row_blocks = -(-N // {rows})\n"
        f"    return {grid}\n"
    )
    if splitk > 1:
        text += (
            f"\n\ndef work({names}):\n"
            '    """Bytes of the partial sums and of the arrival counters (zero before and after)."""\n'
            f"    parts, rows, groups = grid({names})\n"
            f"    blocks = {blocks}\n"
            f'    return {{"partial": blocks * {splitk * cells * 4}, "counters": blocks * 4}}\n'
        )
    return text


def grouped_place_lines(c: Contraction) -> list[str]:
    """The same for many tokens: GROUP blocks of tokens share each block of rows while it is in the cache."""
    lines = [
        "row_blocks = gl.cdiv(N, BLOCK_ROWS)",
        "token_blocks = gl.cdiv(M, TOKENS)",
        "block = gl.program_id(0)",
        "part = gl.program_id(1)",
        "within = block",
    ]
    if c.batched[0]:
        lines += [
            "batch = (block // (row_blocks * token_blocks)).to(gl.int64)",
            "within = block % (row_blocks * token_blocks)",
        ]
    return [
        *lines,
        "first = within // (GROUP * row_blocks) * GROUP",
        "height = gl.minimum(token_blocks - first, GROUP)",
        "token_block = first + within % (GROUP * row_blocks) % height",
        "row_block = within % (GROUP * row_blocks) // height",
    ]


def place_lines(c: Contraction, splitk: int) -> list[str]:
    """Which block of the result a program owns (``block`` is its number), and which part of K."""
    lines = [
        f"row_block = gl.program_id(1) + gl.program_id(2) * {ROW_BLOCKS}",
    ]
    if splitk > 1:
        lines += [
            "part = gl.program_id(0) % SPLITK",
            "output = gl.program_id(0) // SPLITK",
            "block = row_block * (gl.num_programs(0) // SPLITK) + output",
        ]
    else:
        lines += ["output = gl.program_id(0)"]
    if c.batched[0]:
        return [
            *lines,
            "token_blocks = gl.cdiv(M, TOKENS)",
            "batch = (output // token_blocks).to(gl.int64)",
            "token_block = output % token_blocks",
        ]
    return [*lines, "token_block = output"]


FENCE = '''
@gluon.jit
def fence(scalar):
    """What this thread wrote is visible to the device; what it reads from here on is not older than the fence."""
    gl.inline_asm_elementwise(
        "fence.acq_rel.gpu; mov.b32 $0, 0; // $1",
        "=r,r", [scalar], dtype=gl.int32, is_pure=False, pack=1,
    )
'''


def end_lines(
    c: Contraction, splitk: int, *, spare_rows: bool, cell: Sequence[str], gather: Sequence[str]
) -> list[str]:
    """The lines from a block's sums ``total`` to memory: the sum over parts of K, the epilogue, the store.

    ``cell`` names each of a thread's sums by a number below TOKENS * ROWS, in the layout that ``total`` has; ``gather``
    makes ``whole`` of it, ``[TOKENS, ROWS]`` in the layout RESULT."""
    inside_rows = "(row_in < BLOCK_ROWS) & (row < N)" if spare_rows else "row < N"
    store = [
        *gather,
        "row_in = gl.arange(0, ROWS, gl.SliceLayout(0, RESULT))",
        "token = token_block * TOKENS + gl.arange(0, TOKENS, gl.SliceLayout(1, RESULT))",
        "row = row_block * BLOCK_ROWS + row_in",
        f"inside = (token < M)[:, None] & ({inside_rows})[None, :]",
        *epilogue_lines(c),
        *_store_lines(c),
    ]
    if splitk == 1:
        return store
    return [
        "# Each part of K leaves its sums as its threads hold them; the last block to arrive adds all parts in their",
        "# order (so the result does not depend on who came last), and leaves the counter at zero for the next launch.",
        *cell,
        "sums = partial + block.to(gl.int64) * (SPLITK * TOKENS * ROWS)",
        "gl.store(sums + part * (TOKENS * ROWS) + cell, total)",
        "# Every thread's sums are visible before thread 0 counts this block: fence, barrier, then the atomic.",
        "fence(block)",
        "thread_barrier()",
        'arrived = gl.atomic_add(counters + block, 1, sem="acq_rel", scope="gpu")',
        "if arrived == SPLITK - 1:",
        "    fence(block)",
        '    total = gl.load(sums + cell, cache_modifier=".cg")',
        "    for other in gl.static_range(1, SPLITK):",
        '        total += gl.load(sums + other * (TOKENS * ROWS) + cell, cache_modifier=".cg")',
        *(f"    {line}" for line in store),
        "    gl.store(counters + block, 0)",
    ]


def _store_lines(c: Contraction) -> list[str]:
    value = c.epilogue[-1].dest if c.epilogue else "acc"
    target = "y + batch * y_batch" if c.batched[0] else "y"
    # Offsets in 64 bits (strides are i64): M * ldy may pass 2^31.
    if c.y_order == "tn":
        place = "token.to(gl.int64)[:, None] * ldy + row[None, :]"
    else:
        place = "row.to(gl.int64)[None, :] * ldy + token[:, None]"
    cast = f".to(gl.{GLUON_TYPES[c.out_dtype]})"
    return [f"gl.store({target} + ({place}), v_{value}{cast}, mask=inside)"]


def body(lines: Iterable[str]) -> str:
    """Lines of a function's body."""
    return indent("\n".join(lines), "    ") + "\n"
