"""The text of register-ring kernels, from their sizes."""

from __future__ import annotations

from sparsecc.backends.triton import epilogue_text, fragment_asm
from sparsecc.backends.triton import fragment_text as text
from sparsecc.backends.triton.ring_shape import Ring

SENTENCES = (
    "The weight streams from memory into registers, AHEAD chunks ahead of their use (the ring); X waits in shared",
    "memory, one tile in use and one on its way. A round is what all warps do between two barriers: AHEAD chunks each.",
)


def constants(ring: Ring) -> list[tuple[str, int | str, str]]:
    found: list[tuple[str, int | str, str]] = [
        ("TILES", ring.tiles, "row tiles of a block"),
        ("BLOCK_ROWS", ring.tiles * 16, "rows of W of a block"),
        ("WARPS", ring.warps, "row tiles that the warps have room for"),
        ("ROWS", ring.warps * 16, "rows that the warps have room for"),
        ("SPLIT", ring.split, "warps that share the k of a row tile"),
        ("TOKENS", ring.tokens, "of a block"),
        ("EIGHTS", ring.tokens // 8, "of tokens"),
        ("STEPS", ring.steps, "matrix instructions along k in a chunk"),
        ("UNITS", ring.units, "packed units (16 rows, 64 columns) in a chunk"),
        ("UNIT_WORDS", ring.unit_words, "of a unit: values, then 32 words of metadata"),
        ("UNIT_STEPS", ring.unit_steps, "matrix instructions of a unit"),
        ("AHEAD", ring.ahead, "chunks in a warp's ring"),
        ("ROUND_UNITS", ring.ahead * ring.split * ring.units, "units of a row tile in a round"),
        ("SPLITK", ring.splitk, "programs that share K"),
        *ring.x.constants(),
    ]
    if ring.residual:
        found += [
            ("ENTRIES", ring.entries, "vectors of residual entries a lane and chunk, at most"),
            (
                "SCATTER_BYTES",
                ring.scatter_bytes,
                "shared memory of a warp: 512 for padding, then the residual",
            ),
        ]
    return found


def layouts(ring: Ring) -> list[tuple[str, str, str]]:
    b = text.bases
    eights = ring.tokens // 8
    fragments = text.linear_layout(
        b(4, 5, 4) + b(eights, 5, 0),
        b(32, 5, 3),
        b(ring.split, 5, 2) + b(ring.warps, 5, 1),
        [eights, ring.warps, ring.split, 32, 4],
    )
    warps = ring.warps * ring.split
    return [
        (
            "FRAGMENTS",
            fragments,
            "[eights of tokens, row tile, split of k, lane, register] of a fragment.",
        ),
        *ring.x.layouts(),
        (
            "RESULT",
            text.result_layout(ring.c.y_order, ring.tokens, ring.warps * 16, warps),
            "[token, row] of the sums: neighbouring lanes store neighbouring elements.",
        ),
    ]


def functions(ring: Ring) -> str:
    asm = fragment_asm
    c = ring.c
    found = [asm.BASE]
    if ring.x.how == "elements":
        found.append(asm.store_element(1 if c.dtype == "i8" else 2))
    else:
        found += [asm.COPY, asm.COMMIT, asm.wait(0)]
        if ring.x.vectors < ring.x.threads:
            found.append(asm.COPY_IF)
    found += [asm.load_x(ring.x.transposed), asm.multiply(c.dtype, 0)]
    if c.dtype != "i8":
        found.append(asm.multiply(c.dtype, 1))
    if ring.residual:
        found += [asm.LOAD_4, asm.CLEAR, asm.SCATTER, asm.SYNC_WARP]
    if ring.splitk > 1:
        found.append(text.FENCE)
    return (
        "\n".join(
            [*found, ring.x.functions(), _load_chunk(ring), epilogue_text.helpers(c)]
        ).rstrip()
        + "\n"
    )


def _load_chunk(ring: Ring) -> str:
    meta = "0x44444444"  # indices 0 and 1 in each group
    selected = (
        '        values += (gl.load(unit + 128, mask=here, other=0, eviction_policy="evict_first"),)\n'
        if ring.unit_steps == 2
        else ""
    )
    if not ring.residual:
        return f'''
@gluon.jit
def load_chunk(at, at_meta, first, limit):
    """Values and metadata of the units from ``first`` on; those from ``limit`` on are zero and not read."""
    values = ()
    metas = ()
    for u in gl.static_range(UNITS):
        here = first + u < limit
        unit = at + u * UNIT_WORDS
        values += (gl.load(unit, mask=here, other=0, eviction_policy="evict_first"),)
{selected}        metas += (gl.load(at_meta + u * UNIT_WORDS, mask=here, other={meta}, eviction_policy="evict_first"),)
    return values, metas
'''
    return f'''
@gluon.jit
def load_chunk(at, at_meta, here, count, lane_index):
    """Values, metadata and ``count`` vectors of entries of a chunk; zero and not read if it is not ``here``."""
    values = ()
    metas = ()
    entries = ()
    for u in gl.static_range(UNITS):
        unit = at + u * UNIT_WORDS
        values += (gl.load(unit, mask=here, other=0, eviction_policy="evict_first"),)
{selected}        metas += (gl.load(at_meta + u * UNIT_WORDS, mask=here, other={meta}, eviction_policy="evict_first"),)
    for e in gl.static_range(ENTRIES):
        more = here & (lane_index + e * 32 < count)
        entry = at + (UNITS * UNIT_WORDS + e * 128)
        entries += (gl.load(entry, mask=more, other=0, eviction_policy="evict_first"),)
    return values, metas, entries
'''


def kernel(ring: Ring) -> list[str]:
    c = ring.c
    number = "0" if c.accumulator == "i32" else "0.0"
    kind = "int32" if c.accumulator == "i32" else "float32"
    words = (ring.shared + 511) // 512
    lines = [
        *text.place_lines(c, ring.splitk),
        "row_tiles = gl.cdiv(N, 16)",
        "units = gl.cdiv(K, 64)",
        "rounds = gl.cdiv(units, ROUND_UNITS)",
    ]
    if ring.splitk > 1:
        lines += [
            "each = gl.cdiv(rounds, SPLITK)",
            "first_round = part * each",
            "last_round = gl.minimum(rounds, first_round + each)",
            "unit_limit = gl.minimum(units, last_round * ROUND_UNITS)",
            "k_limit = gl.minimum(K, last_round * X_COLUMNS)",
        ]
    else:
        lines += [
            "first_round = row_block * 0",
            "last_round = rounds",
            "unit_limit = units",
            "k_limit = K",
        ]
    lines += [
        "",
        "# All shared memory is this allocation, addressed by the PTX above: Triton sees no access, adds no barrier.",
        f"shared = gl.allocate_shared_memory(gl.int32, [{words}, 1, 128], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))",
        "base = shared_base(row_block)",
        "",
        "# Who am I: row tile, split of k, lane.",
        "eight = gl.arange(0, EIGHTS)[:, None, None, None, None]",
        "tile = gl.arange(0, WARPS)[None, :, None, None, None]",
        "split = gl.arange(0, SPLIT)[None, None, :, None, None]",
        "lane = gl.arange(0, 32)[None, None, None, :, None]",
        "register = gl.arange(0, 4)[None, None, None, None, :]",
        "zero = gl.full([1, WARPS, SPLIT, 32, 4], 0, gl.int32, layout=FRAGMENTS)",
        "zero_x = gl.full([EIGHTS, 1, SPLIT, 32, 4], 0, gl.int32, layout=FRAGMENTS)",
        "lane_index = gl.set_auto_layout(lane + (tile + split) * 0, FRAGMENTS)",
        "row_tile = row_block * TILES + gl.set_auto_layout(tile + (split + lane) * 0, FRAGMENTS)",
        "split_index = gl.set_auto_layout(split + (tile + lane) * 0, FRAGMENTS)",
        "mine = gl.set_auto_layout(tile + (split + lane) * 0, FRAGMENTS) < TILES",
        "mine = mine & (row_tile < row_tiles)",
        "lane_words = gl.set_auto_layout(lane * 4 + register + (tile + split) * 0, FRAGMENTS)",
        "",
    ]
    if c.batched[1]:
        lines.append("weight_tile = batch * row_tiles + row_tile")
    else:
        lines.append("weight_tile = row_tile.to(gl.int64)")
    if ring.residual:
        lines += _residual_places()
    else:
        lines += [
            "# A unit's place is a formula: 64 bits to the row tile, 32 within it.",
            "tile_words = packed + weight_tile * (units.to(gl.int64) * UNIT_WORDS)",
            "values_at = tile_words + lane_words",
            f"meta_at = tile_words + (lane_index + {ring.unit_steps * 128})",
            "unit = first_round * ROUND_UNITS + split_index * UNITS",
            "limit = gl.where(mine, unit_limit, 0)",
        ]
    lines += [
        "",
        "# Fill the ring first: the stream from memory starts as early as it can.",
        "values = ()",
        "metas = ()",
        *(["entries = ()"] if ring.residual else []),
        "for slot in gl.static_range(AHEAD):",
        *_indent(_next_chunk(ring, "values", "metas", "entries")),
        "",
        "# X: what this thread copies, and where its lane finds its fragments. The first tile is on its way.",
        *ring.x.setup("k_limit"),
        *ring.x.fragment("eight", "split * STEPS", "FRAGMENTS", "zero_x"),
        f"x_base = base + {ring.warps * ring.split * ring.scatter_bytes}"
        if ring.residual
        else "x_base = base",
        ring.x.copy("x_base", "first_round * X_COLUMNS"),
        *_commit(ring),
        f"acc = gl.full([EIGHTS, WARPS, SPLIT, 32, 4], {number}, gl.{kind}, layout=FRAGMENTS)",
        f"more = gl.full([EIGHTS, WARPS, SPLIT, 32, 4], {number}, gl.{kind}, layout=FRAGMENTS)",
        *_clear(ring, "the residual fragment begins as zeros"),
        "for round in range(first_round, last_round):",
        *_indent(_round(ring)),
        "",
        "# No copy is under way and nobody reads shared memory any more: it may be used for the sums.",
        *(["wait_copies(lane_index)"] if ring.x.how != "elements" else []),
        "thread_barrier()",
        "shared._keep_alive()",
        "acc = acc + more",
        "total = gl.sum(acc, axis=2)" if ring.split > 1 else "total = acc",
        *text.end_lines(
            c,
            ring.splitk,
            spare_rows=ring.tiles < ring.warps,
            cell=_cell(ring),
            gather=[
                "# A lane is (row g, pair q) and a register (row + 8 h, token 2 q + e): back to [token, row].",
                "whole = total.reshape([EIGHTS, WARPS, 8, 4, 2, 2]).permute([0, 3, 5, 1, 4, 2])",
                "whole = gl.convert_layout(whole.reshape([TOKENS, ROWS]), RESULT)",
            ],
        ),
    ]
    return lines


def _cell(ring: Ring) -> list[str]:
    """The number of a sum: the four of a lane together, lanes and row tiles after each other."""
    if ring.split == 1:
        return [
            "cell = gl.set_auto_layout(((eight * WARPS + tile) * 32 + lane) * 4 + register + split * 0, FRAGMENTS)"
        ]
    return [
        "eight = gl.arange(0, EIGHTS)[:, None, None, None]",
        "tile = gl.arange(0, WARPS)[None, :, None, None]",
        "lane = gl.arange(0, 32)[None, None, :, None]",
        "register = gl.arange(0, 4)[None, None, None, :]",
        "cell = ((eight * WARPS + tile) * 32 + lane) * 4 + register",
        "cell = gl.set_auto_layout(cell, gl.SliceLayout(2, FRAGMENTS))",
    ]


def _indent(lines: list[str]) -> list[str]:
    return [f"    {line}" if line else line for line in lines]


def _commit(ring: Ring) -> list[str]:
    return ["commit(lane_index)"] if ring.x.how != "elements" else []


def _clear(ring: Ring, why: str) -> list[str]:
    if not ring.residual:
        return []
    return [
        f"# {why[0].upper()}{why[1:]}.",
        "for step in gl.static_range(STEPS):",
        "    clear_16(my_residual + (512 + step * 512))",
    ]


def _residual_places() -> list[str]:
    return [
        "# A chunk's place is in `offsets` (vectors of 16 bytes), read one chunk ahead of the chunk.",
        "chunks = gl.cdiv(units, UNITS)",
        "chunk_limit = gl.where(mine, gl.minimum(chunks, gl.cdiv(unit_limit, UNITS)), 0)",
        "chunk = first_round * (ROUND_UNITS // UNITS) + split_index",
        "tile_offsets = offsets + weight_tile * chunks",
        "start = gl.load(tile_offsets + chunk, mask=chunk < chunk_limit, other=0)",
        "stop = gl.load(tile_offsets + chunk + 1, mask=chunk < chunk_limit, other=0)",
        "# A warp's residual fragment: entries land in it, and each lane reads and clears its 16 bytes of each step.",
        "scatter_base = base + gl.set_auto_layout((tile * SPLIT + split) * SCATTER_BYTES + lane * 0, FRAGMENTS)",
        "my_residual = scatter_base + lane_index * 16 + zero",
    ]


def _next_chunk(ring: Ring, values: str, metas: str, entries: str) -> list[str]:
    """Load this warp's next chunk into a slot of the ring, and step to the one after."""
    if not ring.residual:
        return [
            "word = unit * UNIT_WORDS",
            "v, m = load_chunk(values_at + word, meta_at + word, unit, limit)",
            f"{values} = {values} + v",
            f"{metas} = {metas} + m",
            "unit += SPLIT * UNITS",
        ]
    return [
        "word = start.to(gl.int64) * 4",
        "v, m, e = load_chunk(",
        f"    packed + (word + lane_words), packed + (word + (lane_index + {ring.unit_steps * 128})),",
        "    chunk < chunk_limit, stop - start - UNITS * (UNIT_WORDS // 4), lane_index,",
        ")",
        f"{values} = {values} + v",
        f"{metas} = {metas} + m",
        f"{entries} = {entries} + e",
        "chunk += SPLIT",
        "start = gl.load(tile_offsets + chunk, mask=chunk < chunk_limit, other=0)",
        "stop = gl.load(tile_offsets + chunk + 1, mask=chunk < chunk_limit, other=0)",
    ]


def _round(ring: Ring) -> list[str]:
    copies = ring.x.how != "elements"
    lines = [
        "# This thread's copies of this round's X have landed; after the barrier everybody's have, and nobody reads",
        "# the other tile any more (it was last read before this barrier), so the next round's X may overwrite it.",
        *(["wait_copies(lane_index)"] if copies else []),
        "thread_barrier()",
        "odd_round = (round - first_round) & 1",
        ring.x.copy("x_base + (1 - odd_round) * X_BYTES", "(round + 1) * X_COLUMNS"),
        *_commit(ring),
        "x_first = x_even + (x_base + odd_round * X_BYTES)",
        "x_second = x_odd + (x_base + odd_round * X_BYTES)",
        "next_values = ()",
        "next_metas = ()",
        *(["next_entries = ()"] if ring.residual else []),
        "for slot in gl.static_range(AHEAD):",
        *_indent(_chunk(ring)),
        *_indent(["# The slot is free: the chunk of the next round goes there."]),
        *_indent(_next_chunk(ring, "next_values", "next_metas", "next_entries")),
        "values = next_values",
        "metas = next_metas",
        *(["entries = next_entries"] if ring.residual else []),
    ]
    return lines


def _chunk(ring: Ring) -> list[str]:
    """Multiply the chunk in a slot."""
    step = ring.x.step_bytes
    if ring.c.dtype == "i8":
        return [
            "for u in gl.static_range(UNITS // 2):",
            f"    ahead_x = slot * (SPLIT * STEPS * {step}) + u * {2 * step}",
            "    x0 = load_x(x_first + ahead_x)",
            "    x1 = load_x(x_second + ahead_x)",
            "    acc = multiply0(acc, values[slot * UNITS + 2 * u], x0, metas[slot * UNITS + 2 * u])",
            "    more = multiply0(more, values[slot * UNITS + 2 * u + 1], x1, metas[slot * UNITS + 2 * u + 1])",
        ]
    lines = [
        "for u in gl.static_range(UNITS):",
        f"    ahead_x = slot * (SPLIT * STEPS * {step}) + u * {2 * step}",
        "    x0 = load_x(x_first + ahead_x)",
    ]
    if not ring.residual:
        return [
            *lines,
            "    x1 = load_x(x_second + ahead_x)",
            "    acc = multiply0(acc, values[2 * (slot * UNITS + u)], x0, metas[slot * UNITS + u])",
            "    more = multiply1(more, values[2 * (slot * UNITS + u) + 1], x1, metas[slot * UNITS + u])",
        ]
    return [
        "# Entries into the zeroed fragment; the warp sees clears before entries, and entries before reads.",
        "sync_warp(lane_index)",
        "for e in gl.static_range(ENTRIES):",
        "    scatter(entries[slot * ENTRIES + e], scatter_base + zero)",
        "sync_warp(lane_index)",
        *lines,
        "    r0 = load_16(my_residual + (512 + 2 * u * 512))",
        "    x1 = load_x(x_second + ahead_x)",
        "    r1 = load_16(my_residual + (512 + (2 * u + 1) * 512))",
        "    meta = metas[slot * UNITS + u]",
        "    # The residual lies where the 2:4 part does not: its metadata is the complement.",
        "    rest = meta ^ (-1431655766 - 5 * (((meta >> 1) ^ (meta >> 3)) & 0x11111111))",
        "    acc = multiply0(acc, values[2 * (slot * UNITS + u)], x0, meta)",
        "    more = multiply0(more, r0, x0, rest)",
        "    acc = multiply1(acc, values[2 * (slot * UNITS + u) + 1], x1, meta)",
        "    more = multiply1(more, r1, x1, rest)",
        *_clear(ring, "each lane clears what it read"),
    ]
