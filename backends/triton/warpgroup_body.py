"""The kernel itself as Gluon text: warps in step, or warpgroups beside a warp that copies."""

from __future__ import annotations

from sparsecc.backends.triton.fragment_text import body
from sparsecc.backends.triton.warpgroup_text import Plan, chunk_lines, end_lines, place_names

COPIER_REGISTERS = 24
OWNER_REGISTERS = {1: None, 2: 240, 3: 160}
"""Registers of a thread in each specialised warpgroup: what 65536 leave beside the copying warp."""


def _sums_lines(p: Plan) -> list[str]:
    kind = "gl.int32" if p.shape.dtype == "i8" else "gl.float32"
    zero = "0" if p.shape.dtype == "i8" else "0.0"
    return [
        f"{name} = gl.full([WARPS, 32, 32], {zero}, {kind}, layout=FRAGMENT)" for name in p.sums
    ]


def _loop_lines(p: Plan, release: list[str]) -> list[str]:
    """Add up an item's chunks; ``row`` is the first row. The next chunk's weight is on its way during a chunk."""
    tiles = range(p.shape.row_tiles)
    addresses = ", ".join(f"tile{t}" for t in tiles)
    sums = ", ".join(p.sums)
    batch = ", batch" if p.contraction.batched[1] else ""
    start = " + first_chunk.to(gl.int64) * (UNITS * UNIT_BYTES)" if p.split > 1 else ""
    return [
        *chunk_lines(p),
        *(
            f"tile{t} = row_tile(packed, row + {t * 16 * p.warps}, N, K{batch}){start}"
            for t in tiles
        ),
        "left = gl.cdiv(K, 64)" + (" - first_chunk * UNITS" if p.split > 1 else ""),
        *_sums_lines(p),
        f"values, metadata = load({addresses}, left)",
        "for chunk in range(chunks):",
        *(f"    tile{t} += UNITS * UNIT_BYTES" for t in tiles),
        "    left -= UNITS",
        f"    next_values, next_metadata = load({addresses}, left)",
        "    mbarrier.wait(full.index(stage), phase)",
        f"    {sums} = multiply({sums}, values, metadata, stage * (BOXES * BOX_BYTES))",
        "    thread_barrier()",
        *(f"    {line}" for line in release),
        "    values, metadata = next_values, next_metadata",
        "    stage += 1",
        "    if stage == STAGES:",
        "        stage = 0",
        "        phase ^= 1",
    ]


def _items(p: Plan, lines: list[str]) -> list[str]:
    """Lines for one item of work, or for every item of a program."""
    placed = [f"{place_names(p)} = place(item, M, N)", *lines]
    if not p.programs:
        return ["item = gl.program_id(0)", *placed]
    count = "gl.cdiv(N, BLOCK_ROWS) * gl.cdiv(M, TOKENS)"
    count += " * batches" if p.contraction.batched[0] else ""
    count += " * SPLITK" if p.split > 1 else ""
    return [
        f"for item in range(gl.program_id(0), {count}, gl.num_programs(0)):",
        *(f"    {line}" for line in placed),
    ]


def _allocation(p: Plan) -> list[str]:
    c = p.contraction
    shape = [p.boxes * p.stages, *([1] if c.batched[0] else []), *p.box]
    kind = {"f16": "gl.float16", "bf16": "gl.bfloat16", "i8": "gl.int8"}[c.dtype]
    barriers = ["full", "empty"] if p.specialised else ["full"]
    lines = [
        "# The first and largest of the allocations: it lies at offset 0, which the assembly relies on.",
        f"shared = gl.allocate_shared_memory({kind}, {shape}, BOX)",
    ]
    lines += [
        f"{name} = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())"
        for name in barriers
    ]
    lines.append("for s in gl.static_range(STAGES):")
    lines.append("    mbarrier.init(full.index(s), count=1)")
    if p.specialised:
        lines.append(f"    mbarrier.init(empty.index(s), count={p.owners})")
    return [*lines, "thread_barrier()"]


def in_step(p: Plan, names: list[str]) -> str:
    """All warps in step: copies are issued between chunks."""
    batch = "batch, " if p.contraction.batched[0] else ""
    chunk = "first_chunk + {}" if p.split > 1 else "{}"
    fill = f"fill(x, shared, full, {{stage}}, {batch}token_block * TOKENS, ({chunk}) * COLUMNS, {{ahead}} < chunks)"
    lines = [
        *_allocation(p),
        "stage = 0",
        "phase = 0",
        *_items(
            p,
            [
                "row = row_block * BLOCK_ROWS",
                *chunk_lines(p),
                "for s in gl.static_range(STAGES):",
                "    " + fill.format("s", stage="s", ahead="s"),
                *_loop_lines(
                    p, [fill.format("chunk + STAGES", stage="stage", ahead="chunk + STAGES")]
                )[len(chunk_lines(p)) :],
                *end_lines(p),
            ],
        ),
        "for s in gl.static_range(STAGES):",
        "    mbarrier.invalidate(full.index(s))",
        "shared._keep_alive()",
    ]
    return f"\n\n@gluon.jit\ndef {p.contraction.name}({', '.join(names)}):\n" + body(lines)


def specialised(p: Plan, names: list[str]) -> str:
    """Each warpgroup adds up its own rows; one warp copies X ahead of all."""
    c = p.contraction
    batch = "batch, " if c.batched[0] else ""
    column = "(first_chunk + chunk) * COLUMNS" if p.split > 1 else "chunk * COLUMNS"
    scalars = "".join(f", {name}" for name in names if name in ("batches", "y_batch"))
    work = "partial, counters, " if p.split > 1 else ""
    extra = "".join(f"e_{name}, " for name, _, _ in c.operands)
    taken = f"packed, {extra}y, {work}shared, full, empty, M, N, K, ldy{scalars}"
    copied = f"x, shared, full, empty, M, N, K{', batches' if 'batches' in names else ''}"
    copy = [
        "stage = 0",
        "phase = 1",
        *_items(
            p,
            [
                *chunk_lines(p),
                "for chunk in range(chunks):",
                "    mbarrier.wait(empty.index(stage), phase)",
                f"    fill(x, shared, full, stage, {batch}token_block * TOKENS, {column}, True)",
                "    stage += 1",
                "    if stage == STAGES:",
                "        stage = 0",
                "        phase ^= 1",
            ],
        ),
    ]
    add = [
        "stage = 0",
        "phase = 0",
        *_items(
            p,
            [
                f"row = row_block * BLOCK_ROWS + owner * {p.owner_rows}",
                *_loop_lines(p, ["mbarrier.arrive(empty.index(stage), count=1)"]),
                *end_lines(p),
            ],
        ),
    ]
    workers = [f"(add_up, ({taken}, {i}))" for i in range(p.owners)]
    limit = OWNER_REGISTERS[p.warpgroups]
    warps = [4] * (p.owners - 1) + [1]
    registers = [limit or 0] * (p.owners - 1) + [COPIER_REGISTERS]
    main = [
        *_allocation(p),
        "gl.warp_specialize(",
        "    [",
        *(f"        {worker}," for worker in workers),
        f"        (copy, ({copied})),",
        "    ],",
        f"    {warps},",
        f"    {registers},",
        ")",
        "for s in gl.static_range(STAGES):",
        "    mbarrier.invalidate(full.index(s))",
        "    mbarrier.invalidate(empty.index(s))",
        "shared._keep_alive()",
    ]
    return (
        f"\n\n@gluon.jit\ndef copy({copied}):\n"
        '    """The copying warp: X of every chunk, as soon as a stage is empty."""\n'
        + body(copy)
        + f"\n\n@gluon.jit\ndef add_up({taken}, owner: gl.constexpr):\n"
        '    """One warpgroup: the sums of its own rows."""\n'
        + body(add)
        + f"\n\n@gluon.jit\ndef {c.name}({', '.join(names)}):\n"
        + body(main)
    )
