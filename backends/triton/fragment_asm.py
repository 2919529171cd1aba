"""The machine instructions that the fragment kernels use, as Gluon functions around inline PTX.

All shared memory of such a kernel is one allocation that PTX addresses as ``global_smem`` plus an offset: the compiler
sees no load or store of it, so it inserts no barriers, and every barrier that is needed stands in the text.
"""

from __future__ import annotations

_MMA = {
    "f16": ("m16n8k32", "f32.f16.f16.f32", "f", "float32"),
    "bf16": ("m16n8k32", "f32.bf16.bf16.f32", "f", "float32"),
    "i8": ("m16n8k64", "s32.s8.s8.s32", "r", "int32"),
}


def multiply(dtype: str, selector: int) -> str:
    """``mma.sp``: 16 rows times 8 tokens over 32 columns (int8: 64); the selector names the lanes with the metadata."""
    shape, types, kind, result = _MMA[dtype]
    outs = ",".join([f"={kind}"] * 4)
    ins = ",".join(["r"] * 8 + [kind] * 4 + ["r"] * 4)
    lanes = (
        "all lanes"
        if dtype == "i8"
        else f"lanes {2 * selector} and {2 * selector + 1} of each four"
    )
    return f'''
@gluon.jit
def multiply{selector}(acc, a, b, meta):
    """acc + a * b, a in 2:4 with the metadata of {lanes}."""
    return gl.inline_asm_elementwise(
        "mma.sp::ordered_metadata.sync.aligned.{shape}.row.col.{types} "
        "{{$0,$1,$2,$3}}, {{$4,$5,$6,$7}}, {{$8,$9,$10,$11}}, {{$12,$13,$14,$15}}, $16, 0x{selector};",
        "{outs},{ins}",
        [a, b, acc, meta], dtype=gl.{result}, is_pure=True, pack=4,
    )
'''


BASE = '''
@gluon.jit
def shared_base(scalar):
    """Where the block's shared memory begins."""
    return gl.inline_asm_elementwise(
        "mov.u32 $0, global_smem; // $1", "=r,r", [scalar], dtype=gl.int32, is_pure=True, pack=1
    )
'''

COPY = '''
@gluon.jit
def copy_16(target, source, size):
    """Start a copy of 16 bytes into shared memory; the bytes from ``size`` (0 or 16) on are zero and never read."""
    gl.inline_asm_elementwise(
        "cp.async.cg.shared.global [$1], [$2], 16, $3; mov.b32 $0, 0;",
        "=r,r,l,r", [target, source, size], dtype=gl.int32, is_pure=False, pack=1,
    )
'''

COPY_IF = '''
@gluon.jit
def copy_16_if(wanted, target, source, size):
    """The same where ``wanted`` is not 0."""
    gl.inline_asm_elementwise(
        "{ .reg .pred p; setp.ne.b32 p, $1, 0; @p cp.async.cg.shared.global [$2], [$3], 16, $4; mov.b32 $0, 0; }",
        "=r,r,r,l,r", [wanted, target, source, size], dtype=gl.int32, is_pure=False, pack=1,
    )
'''

COMMIT = '''
@gluon.jit
def commit(lane):
    """The copies since the last commit form a group."""
    gl.inline_asm_elementwise(
        "cp.async.commit_group; mov.b32 $0, 0; // $1", "=r,r", [lane], dtype=gl.int32, is_pure=False, pack=1
    )
'''


def wait(groups: int) -> str:
    """Waiting without the barrier that Gluon's own would add."""
    return f'''
@gluon.jit
def wait_copies(lane):
    """This thread's copies have landed, but for the last {groups} groups; a barrier must follow."""
    gl.inline_asm_elementwise(
        "cp.async.wait_group {groups}; mov.b32 $0, 0; // $1", "=r,r", [lane], dtype=gl.int32, is_pure=False, pack=1
    )
'''.replace("landed, but for the last 0 groups", "landed")


DRAIN = wait(0).replace("wait_copies", "drain")


def load_x(transposed: bool) -> str:
    """``ldmatrix``: four 8 x 8 matrices of 16-bit pairs, the B fragment of one step."""
    how = ".trans" if transposed else ""
    lane = "8 tokens of one k" if transposed else "16 bytes of k of one token"
    return f'''
@gluon.jit
def load_x(address):
    """The fragment of X of one step: each lane names {lane}."""
    return gl.inline_asm_elementwise(
        "ldmatrix.sync.aligned.m8n8.x4{how}.shared.b16 {{$0,$1,$2,$3}}, [$4];",
        "=&r,=&r,=&r,=&r,r,r,r,r", [address], dtype=gl.int32, is_pure=False, pack=4,
    )
'''


LOAD_4 = '''
@gluon.jit
def load_16(address):
    """16 bytes of shared memory a lane."""
    return gl.inline_asm_elementwise(
        "ld.shared.v4.b32 {$0,$1,$2,$3}, [$4];",
        "=&r,=&r,=&r,=&r,r,r,r,r", [address], dtype=gl.int32, is_pure=False, pack=4,
    )
'''

LOAD_1 = '''
@gluon.jit
def load_4(address):
    """4 bytes of shared memory a lane."""
    return gl.inline_asm_elementwise(
        "ld.shared.b32 $0, [$1];", "=r,r", [address], dtype=gl.int32, is_pure=False, pack=1
    )
'''

CLEAR = '''
@gluon.jit
def clear_16(address):
    """16 bytes of zeros into shared memory a lane."""
    gl.inline_asm_elementwise(
        "{ .reg .b32 z; mov.b32 z, 0; st.shared.v4.b32 [$4], {z,z,z,z};"
        " mov.b32 $0, 0; mov.b32 $1, 0; mov.b32 $2, 0; mov.b32 $3, 0; }",
        "=&r,=&r,=&r,=&r,r,r,r,r", [address], dtype=gl.int32, is_pure=False, pack=4,
    )
'''

SCATTER = '''
@gluon.jit
def scatter(entries, base):
    """Four entries a lane: the low half of each word goes to ``base`` plus its high half."""
    gl.inline_asm_elementwise(
        """{
        .reg .b32 a0, a1, a2, a3; .reg .b16 v0, v1, v2, v3, h;
        shr.u32 a0, $4, 16; shr.u32 a1, $5, 16; shr.u32 a2, $6, 16; shr.u32 a3, $7, 16;
        add.u32 a0, a0, $8; add.u32 a1, a1, $8; add.u32 a2, a2, $8; add.u32 a3, a3, $8;
        mov.b32 {v0, h}, $4; mov.b32 {v1, h}, $5; mov.b32 {v2, h}, $6; mov.b32 {v3, h}, $7;
        st.shared.b16 [a0], v0; st.shared.b16 [a1], v1; st.shared.b16 [a2], v2; st.shared.b16 [a3], v3;
        mov.b32 $0, 0; mov.b32 $1, 0; mov.b32 $2, 0; mov.b32 $3, 0;
        }""",
        "=r,=r,=r,=r,r,r,r,r,r,r,r,r", [entries, base], dtype=gl.int32, is_pure=False, pack=4,
    )
'''

SYNC_WARP = '''
@gluon.jit
def sync_warp(lane):
    """What the lanes of this warp stored in shared memory is visible to each other."""
    gl.inline_asm_elementwise(
        "bar.warp.sync 0xffffffff; mov.b32 $0, 0; // $1", "=r,r", [lane], dtype=gl.int32, is_pure=False, pack=1
    )
'''


def store_element(size: int) -> str:
    """One element into shared memory, for an X that no copy of 16 bytes can read."""
    if size == 2:
        text = "{ .reg .b16 v, h; mov.b32 {v, h}, $2; @p st.shared.b16 [$1], v; mov.b32 $0, 0; }"
    else:
        text = "{ @p st.shared.b8 [$1], $2; mov.b32 $0, 0; }"
    text = text.replace("@p ", "")
    return f'''
@gluon.jit
def store_element(address, bits):
    """The low {size * 8} bits into shared memory."""
    gl.inline_asm_elementwise(
        "{text}",
        "=r,r,r", [address, bits], dtype=gl.int32, is_pure=False, pack=1,
    )
'''
