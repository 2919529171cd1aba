"""The text of staged kernels, from their sizes."""

from __future__ import annotations

from sparsecc.backends.triton import epilogue_text, fragment_asm
from sparsecc.backends.triton import fragment_text as text
from sparsecc.backends.triton.staged_shape import Staged

SENTENCES = (
    "Packed units of W and tiles of X stream through a ring of STAGES stages in shared memory, copied asynchronously",
    "STAGES - 1 ahead of their use. A stage is UNITS units of each of the block's row tiles, and X for them.",
)


def constants(s: Staged) -> list[tuple[str, int | str, str]]:
    return [
        ("TILES", s.tiles, "row tiles of a block"),
        ("BLOCK_ROWS", s.tiles * 16, "rows of W of a block"),
        ("ROWS", s.tiles * 16, "the same"),
        ("WARPS", s.warps, "of a block along rows"),
        ("WARP_TILES", s.tiles // s.warps, "row tiles of a warp"),
        ("TOKENS", s.tokens, "of a block"),
        ("TOKEN_WARPS", s.token_warps, "of a block along tokens"),
        ("EIGHTS", s.tokens // s.token_warps // 8, "of tokens of a warp"),
        ("UNITS", s.units, "packed units (16 rows, 64 columns) of a row tile in a stage"),
        ("UNIT_BYTES", s.unit_bytes, "of a unit: values, then 128 of metadata"),
        ("TILE_BYTES", s.units * s.unit_bytes, "of a row tile in a stage"),
        ("TILE_VECTORS", s.tile_vectors, "copies of 16 bytes of a row tile in a stage"),
        ("TILE_THREADS", s.tile_threads, "threads that copy a row tile"),
        ("COPIES", -(-s.tile_vectors // s.tile_threads), "of each of them"),
        ("STAGES", s.stages, "in shared memory"),
        ("STAGE_BYTES", s.stage_bytes, "X, then the units"),
        ("SPLITK", s.splitk, "programs that share K"),
        ("GROUP", s.group, "blocks of tokens that share rows in the cache"),
        *s.x.constants(),
    ]


def layouts(s: Staged) -> list[tuple[str, str, str]]:
    b = text.bases
    eights, tiles = s.tokens // s.token_warps // 8, s.tiles // s.warps
    fragments = text.linear_layout(
        b(4, 6, 5) + b(eights, 6, 1) + b(tiles, 6, 0),
        b(32, 6, 4),
        b(s.token_warps, 6, 3) + b(s.warps, 6, 2),
        [tiles, eights, s.warps, s.token_warps, 32, 4],
    )
    return [
        (
            "FRAGMENTS",
            fragments,
            "[row tile, eights of tokens, warp along rows, warp along tokens, lane, register] of a fragment.",
        ),
        *s.x.layouts(),
        (
            "RESULT",
            text.result_layout(s.c.y_order, s.tokens, s.tiles * 16, s.all_warps),
            "[token, row] of the sums: neighbouring lanes store neighbouring elements.",
        ),
    ]


def functions(s: Staged) -> str:
    asm = fragment_asm
    c = s.c
    ragged = s.tile_vectors % s.tile_threads != 0
    found = [asm.BASE, asm.COPY, asm.COMMIT, asm.wait(s.stages - 2), asm.DRAIN]
    if ragged or (s.x.how != "elements" and s.x.vectors < s.x.threads):
        found.append(asm.COPY_IF)
    if s.x.how == "elements":
        found.append(asm.store_element(1 if c.dtype == "i8" else 2))
    found += [asm.load_x(s.x.transposed), asm.LOAD_4, asm.LOAD_1, asm.multiply(c.dtype, 0)]
    if c.dtype != "i8":
        found.append(asm.multiply(c.dtype, 1))
    if s.splitk > 1:
        found.append(text.FENCE)
    return (
        "\n".join([*found, s.x.functions(), _copy_units(s), epilogue_text.helpers(c)]).rstrip()
        + "\n"
    )


def _copy_units(s: Staged) -> str:
    copy = "copy_16(w_to + target + r * (TILE_THREADS * 16), w_from + (advance + r * (TILE_THREADS * 16)), size)"
    wanted = ""
    if s.tile_vectors % s.tile_threads:
        wanted = "        wanted = (w_vector + r * TILE_THREADS < TILE_VECTORS).to(gl.int32)\n"
        copy = copy.replace("copy_16(", "copy_16_if(wanted, ")
    return f'''
@gluon.jit
def copy_units(target, first, advance, w_vector, w_from, w_to, w_limit):
    """Start copying the units of a stage: ``first`` vectors (``advance`` bytes) into the row tiles, zeros beyond K."""
    for r in gl.static_range(COPIES):
{wanted}        size = gl.where(first + w_vector + r * TILE_THREADS < w_limit, 16, 0)
        {copy}
'''


def kernel(s: Staged) -> list[str]:
    c = s.c
    number = "0" if c.accumulator == "i32" else "0.0"
    kind = "int32" if c.accumulator == "i32" else "float32"
    words = (s.stages * s.stage_bytes + 511) // 512
    place = text.grouped_place_lines(c) if s.group > 1 else text.place_lines(c, s.splitk)
    lines = [
        *place,
        "row_tiles = gl.cdiv(N, 16)",
        "units = gl.cdiv(K, 64)",
        "all_stages = gl.cdiv(units, UNITS)",
    ]
    if s.splitk > 1:
        lines += [
            "each = gl.cdiv(all_stages, SPLITK)",
            "first_stage = part * each",
            "last_stage = gl.minimum(all_stages, first_stage + each)",
            "unit_limit = gl.minimum(units, last_stage * UNITS)",
            "k_limit = gl.minimum(K, last_stage * X_COLUMNS)",
        ]
    else:
        lines += [
            "first_stage = row_block * 0",
            "last_stage = all_stages",
            "unit_limit = units",
            "k_limit = K",
        ]
    tile = "weight_row + w_tile" if c.batched[1] else "(row_block * TILES + w_tile).to(gl.int64)"
    lines += [
        "",
        "# All shared memory is this allocation, addressed by the PTX above: Triton sees no access, adds no barrier.",
        f"shared = gl.allocate_shared_memory(gl.int32, [{words}, 1, 128], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))",
        "base = shared_base(row_block)",
        "",
        "# W: TILE_THREADS threads copy a row tile's units, which lie one after the other. Limits count vectors.",
        f"w_thread = gl.arange(0, {s.threads}, THREAD)",
        "w_tile = w_thread // TILE_THREADS",
        "w_vector = w_thread % TILE_THREADS",
        *(["weight_row = batch * row_tiles + row_block * TILES"] if c.batched[1] else []),
        f"w_from = packed.to(gl.int64) + ({tile}) * (units.to(gl.int64) * UNIT_BYTES) + w_vector * 16",
        "w_to = X_BYTES + w_tile * TILE_BYTES + w_vector * 16",
        "w_limit = gl.where(row_block * TILES + w_tile < row_tiles, unit_limit * (UNIT_BYTES // 16), 0)",
        "",
        "# X: what this thread copies.",
        *s.x.setup("k_limit"),
        "",
        "# Fill: all stages but one are on their way.",
        "for stage in gl.static_range(STAGES - 1):",
        *_indent(_copy_stage(s, "stage", "first_stage + stage")),
        "",
        "# Who am I: row tile, eight of tokens, warps, lane; where my lane finds its parts in a stage.",
        "tile = gl.arange(0, WARP_TILES)[:, None, None, None, None, None]",
        "eight = gl.arange(0, EIGHTS)[None, :, None, None, None, None]",
        "warp = gl.arange(0, WARPS)[None, None, :, None, None, None]",
        "token_warp = gl.arange(0, TOKEN_WARPS)[None, None, None, :, None, None]",
        "lane = gl.arange(0, 32)[None, None, None, None, :, None]",
        "zero_w = gl.full([WARP_TILES, 1, WARPS, TOKEN_WARPS, 32, 4], 0, gl.int32, layout=FRAGMENTS)",
        "zero_x = gl.full([1, EIGHTS, WARPS, TOKEN_WARPS, 32, 4], 0, gl.int32, layout=FRAGMENTS)",
        "my_tile = gl.set_auto_layout(warp * WARP_TILES + tile + lane * 0, FRAGMENTS)",
        "my_lane = gl.set_auto_layout(lane + (warp + tile) * 0, FRAGMENTS)",
        "w_values = base + X_BYTES + my_tile * TILE_BYTES + my_lane * 16 + zero_w",
        f"w_meta = base + X_BYTES + my_tile * TILE_BYTES + {s.unit_steps * 512} + my_lane * 4",
        "my_limit = gl.where(row_block * TILES + my_tile < row_tiles, unit_limit, 0)",
        *s.x.fragment("token_warp * EIGHTS + eight", "0", "FRAGMENTS", "zero_x"),
        "x_even += base",
        "x_odd += base",
        f"acc = gl.full([WARP_TILES, EIGHTS, WARPS, TOKEN_WARPS, 32, 4], {number}, gl.{kind}, layout=FRAGMENTS)",
        "slot = row_block * 0",
        "free = slot + (STAGES - 1)",
        "for stage in range(first_stage, last_stage):",
        *_indent(_stage(s)),
        "",
        "# Nobody reads shared memory any more, and no copy is under way: it may be used for the sums.",
        "drain(w_thread)",
        "thread_barrier()",
        "shared._keep_alive()",
        "total = acc",
        *text.end_lines(
            c,
            s.splitk,
            spare_rows=False,
            cell=[
                "register = gl.arange(0, 4)[None, None, None, None, None, :]",
                "cell = ((tile * EIGHTS + eight) * WARPS + warp) * TOKEN_WARPS + token_warp",
                "cell = gl.set_auto_layout((cell * 32 + lane) * 4 + register, FRAGMENTS)",
            ],
            gather=[
                "# A lane is (row g, pair q) and a register (row + 8 h, token 2 q + e): back to [token, row].",
                "whole = total.reshape([WARP_TILES, EIGHTS, WARPS, TOKEN_WARPS, 8, 4, 2, 2])",
                "whole = whole.permute([3, 1, 5, 7, 2, 0, 6, 4]).reshape([TOKENS, ROWS])",
                "whole = gl.convert_layout(whole, RESULT)",
            ],
        ),
    ]
    return lines


def _indent(lines: list[str]) -> list[str]:
    return [f"    {line}" if line else line for line in lines]


def _copy_stage(s: Staged, slot: str, stage: str) -> list[str]:
    """Start all copies of a stage; beyond the last stage they are zeros that nobody reads."""
    return [
        f"target = base + ({slot}) * STAGE_BYTES",
        f"units_before = ({stage}) * TILE_VECTORS",
        "copy_units(target, units_before, units_before.to(gl.int64) * 16, w_vector, w_from, w_to, w_limit)",
        s.x.copy("target", f"({stage}) * X_COLUMNS"),
        "commit(w_thread)",
    ]


def _stage(s: Staged) -> list[str]:
    step = s.x.step_bytes
    lines = [
        "# This thread's copies of this stage have landed; after the barrier everybody's have, and nobody reads the",
        "# slot of the stage before any more (it was last read before this barrier): new copies go there.",
        "wait_copies(w_thread)",
        "thread_barrier()",
        *_copy_stage(s, "free", "stage + (STAGES - 1)"),
        "here = slot * STAGE_BYTES",
        "free = slot",
        "slot = gl.where(slot == STAGES - 1, 0, slot + 1)",
    ]
    meta = [
        "    # Units beyond K are zeros, which is no legal metadata: indices 0 and 1 stand for it.",
        "    meta = gl.where(stage * UNITS + u < my_limit, load_4(w_meta + here + u * UNIT_BYTES), 0x44444444)",
    ]
    if s.c.dtype == "i8":
        pair: list[str] = []
        for which, name in enumerate(("x_even", "x_odd")):
            pair += [
                "    # Units beyond K are zeros, which is no legal metadata: indices 0 and 1 stand for it.",
                f"    unit = u * 2 + {which}",
                "    meta = load_4(w_meta + here + unit * UNIT_BYTES)",
                "    meta = gl.where(stage * UNITS + unit < my_limit, meta, 0x44444444)",
                f"    x_step = load_x({name} + here + u * {2 * step})",
                "    acc = multiply0(acc, load_16(w_values + here + unit * UNIT_BYTES), x_step, meta)",
            ]
        return [*lines, "for u in gl.static_range(UNITS // 2):", *pair]
    return [
        *lines,
        "for u in gl.static_range(UNITS):",
        *meta,
        f"    x0 = load_x(x_even + here + u * {2 * step})",
        "    acc = multiply0(acc, load_16(w_values + here + u * UNIT_BYTES), x0, meta)",
        f"    x1 = load_x(x_odd + here + u * {2 * step})",
        "    acc = multiply1(acc, load_16(w_values + here + (u * UNIT_BYTES + 512)), x1, meta)",
    ]
