"""The functions of a warpgroup kernel as Gluon text: where a program works, how it adds up a chunk, how it ends."""

from __future__ import annotations

from dataclasses import dataclass

from sparsecc.backends.triton.contraction import Contraction
from sparsecc.backends.triton.epilogue_text import GLUON_TYPES, epilogue_lines
from sparsecc.backends.triton.fragment_text import bases, body, linear_layout
from sparsecc.backends.triton.warpgroup_asm import REGISTERS, Shape


@dataclass(frozen=True)
class Plan:
    """A schedule, checked."""

    contraction: Contraction
    shape: Shape
    warpgroups: int
    specialised: bool
    stages: int
    split: int
    group: int
    programs: int

    @property
    def warps(self) -> int:
        """Warps that hold one block of sums together."""
        return 4 if self.specialised else 4 * self.warpgroups

    @property
    def owners(self) -> int:
        """Blocks of sums in a program: each specialised warpgroup has its own."""
        return self.warpgroups if self.specialised else 1

    @property
    def owner_rows(self) -> int:
        return self.warps * 16 * self.shape.row_tiles

    @property
    def rows(self) -> int:
        """Rows of a program's block."""
        return self.owner_rows * self.owners

    @property
    def box(self) -> tuple[int, int]:
        """Extents of one bulk copy: 128 bytes of contiguous X wide."""
        tokens = self.shape.tokens
        whole = tokens if tokens & (tokens - 1) == 0 else 64
        columns = 128 if self.shape.dtype == "i8" else 64
        return (64, 64) if self.shape.transposed else (whole, columns)

    @property
    def box_bytes(self) -> int:
        return self.box[0] * self.box[1] * (1 if self.shape.dtype == "i8" else 2)

    @property
    def boxes(self) -> int:
        """Bulk copies of a stage."""
        return self.shape.stage_bytes // self.box_bytes

    @property
    def sums(self) -> list[str]:
        """Names of the pieces: row tile, then 64 tokens."""
        parts = self.shape.tokens // 64
        return [f"sum{tile}{part}" for tile in range(self.shape.row_tiles) for part in range(parts)]

    @property
    def cells(self) -> int:
        """Sums of a program's block."""
        return self.rows * self.shape.tokens


def kernel_constants(p: Plan) -> list[tuple[str, int | str, str]]:
    """Numbers that the text names."""
    s = p.shape
    found: list[tuple[str, int | str, str]] = [
        (
            "WARPS",
            p.warps,
            "that hold a block of sums; warp w owns rows 16 w and up of each row tile",
        ),
        ("TOKENS", s.tokens, "of a block"),
        ("BLOCK_ROWS", p.rows, "of a program"),
        ("COLUMNS", s.columns, "of a chunk of K"),
        ("UNITS", s.units, "of 64 columns in a chunk, for each row tile"),
        ("UNIT_BYTES", s.unit_bytes, "of 16 rows x 64 columns: values, metadata"),
        ("STAGES", p.stages, "of X in shared memory"),
        ("BOXES", p.boxes, "bulk copies of a stage"),
        ("BOX_BYTES", p.box_bytes, "of one bulk copy"),
        ("GROUP", p.group, "token blocks that run side by side down the rows"),
    ]
    if p.split > 1:
        found.append(("SPLITK", p.split, "parts of K"))
    return found


def kernel_layouts(p: Plan) -> list[tuple[str, str, str]]:
    """Layouts that the text names."""
    fragment = linear_layout(
        bases(REGISTERS, 3, 2), bases(32, 3, 1), bases(p.warps, 3, 0), [p.warps, 32, REGISTERS]
    )
    bits = 8 if p.shape.dtype == "i8" else 16
    wide = vector(p.contraction)
    rows = 16 * p.warps
    if p.contraction.y_order == "tn":
        across = min(32, rows // wide)
        result = (
            f"gl.BlockedLayout([1, {wide}], [{32 // across}, {across}], [{p.warps}, 1], [1, 0])"
        )
    else:
        across = 64 // wide
        result = (
            f"gl.BlockedLayout([{wide}, 1], [{across}, {32 // across}], [1, {p.warps}], [0, 1])"
        )
    return [
        ("FRAGMENT", fragment, "Registers of a thread: [warp, lane, register]."),
        ("RESULT", result, "A piece of the result, [token, row], as it is stored."),
        (
            "BOX",
            f"gl.NVMMASharedLayout(128, {bits}, {3 if p.contraction.batched[0] else 2})",
            "X in shared memory.",
        ),
    ]


def vector(c: Contraction) -> int:
    """Elements of Y that one thread stores together."""
    return {"f16": 8, "bf16": 8, "i8": 8}.get(c.out_dtype, 4)


def place_text(p: Plan) -> str:
    """Which block of the result, and which part of K, an item of work is."""
    lines = [
        "row_blocks = gl.cdiv(N, BLOCK_ROWS)",
        "token_blocks = gl.cdiv(M, TOKENS)",
    ]
    names: list[str] = []
    if p.split > 1:
        lines += ["part = item % SPLITK", "item = item // SPLITK"]
    if p.contraction.batched[0]:
        lines += [
            "batch = item // (row_blocks * token_blocks)",
            "within = item % (row_blocks * token_blocks)",
        ]
        names.append("batch")
    else:
        lines.append("within = item")
    lines += [
        "first = within // (GROUP * row_blocks) * GROUP",
        "side = gl.minimum(token_blocks - first, GROUP)",
        "token_block = first + within % (GROUP * row_blocks) % side",
        "row_block = within % (GROUP * row_blocks) // side",
    ]
    names += ["token_block", "row_block"]
    if p.split > 1:
        names += ["item", "part"]
    parameters = "item, M, N"
    return (
        f"\n\n@gluon.jit\ndef place({parameters}):\n"
        f'    """An item of work: {", ".join(names)}. {p.group} token blocks share rows of W while they are in L2."""\n'
        + body(lines)
        + f"    return {', '.join(names)}\n"
    )


def place_names(p: Plan) -> str:
    names = ["batch"] if p.contraction.batched[0] else []
    names += ["token_block", "row_block"]
    return ", ".join(names + (["block", "part"] if p.split > 1 else []))


def chunk_lines(p: Plan) -> list[str]:
    """The chunks of K that an item adds up."""
    if p.split == 1:
        return ["chunks = gl.cdiv(K, COLUMNS)"]
    return [
        "share = gl.cdiv(gl.cdiv(K, COLUMNS), SPLITK)",
        "first_chunk = part * share",
        "chunks = gl.minimum(gl.cdiv(K, COLUMNS) - first_chunk, share)",
    ]


def weight_text(p: Plan) -> str:
    """Addresses of the weight, and the two assembly texts as functions."""
    tiles = range(p.shape.row_tiles)
    addresses = ", ".join(f"tile{t}" for t in tiles)
    sums = ", ".join(p.sums)
    kind = "gl.int32" if p.shape.dtype == "i8" else "gl.float32"
    taken = ", batch" if p.contraction.batched[1] else ""
    batch = " + batch.to(gl.int64) * gl.cdiv(N, 16)" if p.contraction.batched[1] else ""
    kinds = f"({', '.join([kind] * len(p.sums))})" if len(p.sums) > 1 else kind
    return f'''

@gluon.jit
def row_tile(packed, row, N, K{taken}):
    """Where each lane's first vector of its warp's 16 rows lies; a tile below the last row reads the last again."""
    warp = gl.arange(0, WARPS, layout=gl.SliceLayout(1, gl.SliceLayout(2, FRAGMENT)))
    lane = gl.arange(0, 32, layout=gl.SliceLayout(0, gl.SliceLayout(2, FRAGMENT)))
    tile = gl.minimum(row // 16 + warp, gl.cdiv(N, 16) - 1).to(gl.int64){batch}
    first = packed.to(gl.int64) + tile * (gl.cdiv(K, 64) * UNIT_BYTES)
    address = first[:, None] + (lane * 16).to(gl.int64)[None, :]
    return address[:, :, None] + gl.full([WARPS, 32, 32], 0, gl.int64, layout=FRAGMENT)


@gluon.jit
def load({addresses}, left):
    """Values and metadata of a chunk, straight to registers; zeros for units that are not left."""
    return gl.inline_asm_elementwise(
        LOAD, LOAD_OPERANDS, [{addresses}, left], dtype=(gl.int32, gl.int32), is_pure=False, pack=32
    )


@gluon.jit
def multiply({sums}, values, metadata, offset):
    """Add a chunk's products; X lies ``offset`` bytes into shared memory."""
    return gl.inline_asm_elementwise(
        MULTIPLY, MULTIPLY_OPERANDS, [{sums}, values, metadata, offset],
        dtype={kinds}, is_pure=False, pack=32,
    )
'''


def fill_text(p: Plan) -> str:
    """X of one chunk, by bulk copies into a stage."""
    batch = "batch, " if p.contraction.batched[0] else ""
    lines = ["mbarrier.expect(full.index(stage), BOXES * BOX_BYTES, pred=inside)"]
    tokens_of_box = 64 if p.shape.transposed else p.box[0]
    across = p.shape.tokens // tokens_of_box
    for box in range(p.boxes):
        panel, part = divmod(box, across)
        token = f"token + {part * tokens_of_box}" if part else "token"
        width = 128 if p.shape.dtype == "i8" else 64
        column = f"column + {panel * width}" if panel else "column"
        where = f"{column}, {token}" if p.shape.transposed else f"{token}, {column}"
        lines += [
            "async_load(",
            f"    x, [{batch}{where}], full.index(stage), shared.index(stage * BOXES + {box}), pred=inside",
            ")",
        ]
    return (
        f"\n\n@gluon.jit\ndef fill(x, shared, full, stage, {batch}token, column, inside):\n"
        '    """Copy a chunk of X into a stage; what lies beyond X is zero."""\n' + body(lines)
    )


def finish_text(p: Plan) -> str:
    """Store a piece of the sums."""
    c = p.contraction
    wide = vector(c)
    batched = c.batched[0]
    extent = "N" if c.y_order == "tn" else "M"
    even = f"(ldy % {wide} == 0) & ({extent} % {wide} == 0)" + (
        f" & (y_batch % {wide} == 0)" if batched else ""
    )
    rounded = [f"{extent} = {extent} // {wide} * {wide}", f"ldy = ldy // {wide} * {wide}"]
    if batched:
        rounded.append(f"y_batch = y_batch // {wide} * {wide}")
    extra = "".join(f"e_{name}, " for name, _, _ in c.operands)
    tail = "M, N, ldy" + (", y_batch, batch" if batched else "")
    cast = f".to(gl.{GLUON_TYPES[c.out_dtype]})"
    value = c.epilogue[-1].dest if c.epilogue else "acc"
    lines = [
        "# Lane 4 g + q of warp w holds rows 16 w + g and 8 more, tokens 8 i + 2 q and one more.",
        "piece = sums.reshape([WARPS, 8, 4, 8, 2, 2]).permute([3, 2, 5, 0, 4, 1]).reshape([64, 16 * WARPS])",
    ]
    if not c.epilogue:
        lines.append(f"piece = piece{cast}")
    lines += [
        "whole = gl.convert_layout(piece, RESULT)",
        "token = token0 + gl.arange(0, 64, gl.SliceLayout(1, RESULT))",
        "row = row0 + gl.arange(0, 16 * WARPS, gl.SliceLayout(0, RESULT))",
    ]
    if c.operands:
        lines.append("inside = (token < M)[:, None] & (row < N)[None, :]")
    lines += epilogue_lines(c)
    lines += [
        f"result = v_{value}{cast if c.epilogue else ''}",
        f"if {even}:",
        f"    # The same, but known to be whole vectors of {wide}.",
        *(f"    {line}" for line in rounded),
        f"    put(result, y, token, row, {tail})",
        "else:",
        f"    put(result, y, token, row, {tail})",
    ]
    target = "y + batch.to(gl.int64) * y_batch" if batched else "y"
    if c.y_order == "tn":
        where = "token.to(gl.int64)[:, None] * ldy + row[None, :]"
    else:
        where = "row.to(gl.int64)[None, :] * ldy + token[:, None]"
    store = [
        "inside = (token < M)[:, None] & (row < N)[None, :]",
        f"gl.store({target} + ({where}), result, mask=inside)",
    ]
    return (
        f"\n\n@gluon.jit\ndef put(result, y, token, row, {tail}):\n"
        + body(store)
        + f"\n\n@gluon.jit\ndef finish(sums, y, {extra}token0, row0, {tail}):\n"
        + '    """Turn a piece of the sums into [token, row], run the epilogue, store it."""\n'
        + body(lines)
    )


def end_lines(p: Plan) -> list[str]:
    """From an item's sums to memory; ``row`` is the first row of the block of sums."""
    c = p.contraction
    extra = "".join(f"e_{name}, " for name, _, _ in c.operands)
    tail = "M, N, ldy" + (", y_batch, batch" if c.batched[0] else "")
    parts = p.shape.tokens // 64
    store = [
        f"finish({name}, y, {extra}token_block * TOKENS + {i % parts * 64}, row + {i // parts * p.warps * 16}, {tail})"
        for i, name in enumerate(p.sums)
    ]
    if p.split == 1:
        return store
    cells = p.warps * 32 * REGISTERS
    owner = "block * OWNERS + owner" if p.owners > 1 else "block"
    lines = [
        "# Each part of K leaves its sums; the last to arrive adds all parts in their order, and leaves the",
        "# counter at zero for the next launch.",
        f"owner_block = {owner}",
        f"mine = partial + owner_block.to(gl.int64) * {p.split * len(p.sums) * cells} + cell_of_thread()",
        *(
            f"gl.store(mine + (part * {len(p.sums)} + {i}) * {cells}, {name})"
            for i, name in enumerate(p.sums)
        ),
        "fence(part)",
        "thread_barrier()",
        'arrived = gl.atomic_add(counters + owner_block, 1, sem="acq_rel", scope="gpu")',
        "if arrived == SPLITK - 1:",
        "    fence(part)",
    ]
    lines += [
        f'    {name} = gl.load(mine + {i * cells}, cache_modifier=".cg")'
        for i, name in enumerate(p.sums)
    ]
    lines.append("    for other in range(1, SPLITK):")
    lines += [
        f'        {name} += gl.load(mine + (other * {len(p.sums)} + {i}) * {cells}, cache_modifier=".cg")'
        for i, name in enumerate(p.sums)
    ]
    lines += [f"    {line}" for line in store]
    return [*lines, "    gl.store(counters + owner_block, 0)"]


CELL = '''

@gluon.jit
def cell_of_thread():
    """Where a thread keeps each of its registers among the partial sums: vectors of four, lane by lane."""
    warp = gl.arange(0, WARPS, layout=gl.SliceLayout(1, gl.SliceLayout(2, FRAGMENT)))[:, None]
    lane = gl.arange(0, 32, layout=gl.SliceLayout(0, gl.SliceLayout(2, FRAGMENT)))[None, :]
    register = gl.arange(0, 32, layout=gl.SliceLayout(0, gl.SliceLayout(1, FRAGMENT)))[None, None, :]
    return (warp * 32 + lane)[:, :, None] * 4 + register // 4 * (WARPS * 128) + register % 4
'''
