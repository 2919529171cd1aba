"""The dense operand's tile in shared memory: how it gets there, and where a lane finds its part of a fragment.

Three ways, by the order of X and what is known about its rows:

* ``rows``: k is contiguous and rows are aligned. Copies of 16 bytes into ``[token][k]``.
* ``columns``: tokens are contiguous and aligned, 16-bit. Copies of 16 bytes into ``[k][token]``, read transposed.
* ``elements``: all else. Loads of one element into registers, then into ``[token][k]``.

Vectors of 16 bytes are exclusive-ored with their row so that the eight rows that ``ldmatrix`` reads lie in different
banks. Tokens beyond M and k beyond the limit become zero and are never read.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparsecc.backends.triton.contraction import Contraction

BYTES = {"f16": 2, "bf16": 2, "i8": 1}


@dataclass(frozen=True)
class XTile:
    """A tile of ``tokens`` by ``steps`` matrix instructions (64 bytes of k each)."""

    tokens: int
    steps: int
    threads: int
    warps: int
    order: str
    aligned: bool
    dtype: str
    batched: bool

    @staticmethod
    def of(c: Contraction, tokens: int, steps: int, warps: int) -> XTile:
        return XTile(tokens, steps, warps * 32, warps, c.x_order, c.aligned, c.dtype, c.batched[0])

    @property
    def how(self) -> str:
        if not self.aligned or (self.order == "kt" and self.dtype == "i8"):
            return "elements"
        return "rows" if self.order == "tk" else "columns"

    @property
    def transposed(self) -> bool:
        return self.how == "columns"

    @property
    def columns(self) -> int:
        """Of k."""
        return self.steps * 64 // BYTES[self.dtype]

    @property
    def bytes(self) -> int:
        return self.tokens * self.steps * 64

    @property
    def vectors(self) -> int:
        return self.bytes // 16

    @property
    def step_bytes(self) -> int:
        """From a step's fragment to the next one's."""
        return 64 * self.tokens if self.transposed else 64

    @property
    def group(self) -> int:
        """Elements that a thread loads before it stores them."""
        each = self.tokens * self.columns // self.threads
        group = 1
        while group < 16 and each % (group * 2) == 0:
            group *= 2
        return group

    def constants(self) -> list[tuple[str, int | str, str]]:
        found: list[tuple[str, int | str, str]] = [
            ("X_BYTES", self.bytes, "of a tile of X in shared memory"),
            ("X_COLUMNS", self.columns, "of k in a tile of X"),
        ]
        if self.transposed:
            found.append(("X_PITCH", self.tokens * 2, "bytes from a k to the next"))
        else:
            found.append(("X_PITCH", self.steps * 64, "bytes from a token to the next"))
        if self.how == "elements":
            each = self.tokens * self.columns // self.threads
            found.append(("X_GROUP", self.group, "elements of X that a thread loads at once"))
            found.append(("X_GROUPS", each // self.group, "such groups a thread and tile"))
        else:
            found.append(
                (
                    "X_COPIES",
                    -(-self.vectors // self.threads),
                    "copies of 16 bytes a thread and tile",
                )
            )
        return found

    def layouts(self) -> list[tuple[str, str, str]]:
        return [
            (
                "THREAD",
                f"gl.BlockedLayout([1], [32], [{self.warps}], [0])",
                "One element a thread: who copies what.",
            )
        ]

    def _swizzle(self, row: str) -> str:
        """What a vector's number is exclusive-ored with in a row of the tile (linear in the row's bits)."""
        if not self.transposed or self.tokens >= 64:
            return f"({row} & 7)"
        if self.tokens == 8:
            return "0"
        shift, mask = {16: (2, 1), 32: (1, 3)}[self.tokens]
        return f"(({row} >> {shift}) & {mask})"

    @property
    def _across(self) -> int:
        """Vectors of 16 bytes in a row of the tile."""
        return self.tokens // 8 if self.transposed else self.steps * 4

    def functions(self) -> str:
        if self.how == "elements":
            return self._element_function()
        copy, first = "copy_16", ""
        if self.vectors < self.threads:
            copy, first = "copy_16_if", "wanted, "
        if self.threads >= self._across:
            row, column = f"r * {self.threads // self._across}", "0"
        else:
            ratio = self._across // self.threads
            row, column = f"r // {ratio}", f"r % {ratio} * {self.threads}"
        swizzle = self._swizzle(f"({row})")
        if self.transposed:
            size = f"gl.where(start + {row} < x_left, 16, 0)"
            about = "k by k"
        else:
            each = 16 // BYTES[self.dtype]
            size = f"gl.where((start + {column} * {each} < x_left) & ({row} < x_tokens), 16, 0)"
            about = "token by token"
        wanted = (
            f"    wanted = (gl.arange(0, {self.threads}, THREAD) < {self.vectors}).to(gl.int32)\n"
            if first
            else ""
        )
        return f'''
@gluon.jit
def copy_x(target, start, advance, pitch, x_from, x_to, x_left, x_tokens):
    """Start copying the tile of X whose first k is ``start``, ``advance`` bytes from the first tile, {about}."""
{wanted}    for r in gl.static_range(X_COPIES):
        size = {size}
        place = (x_to ^ ({swizzle} * 16)) + ({row}) * X_PITCH + {column} * 16
        {copy}({first}target + place, x_from + (advance + ({row}) * pitch + {column} * 16), size)
'''

    def _element_function(self) -> str:
        size = BYTES[self.dtype]
        if self.order == "tk":
            split = "t = element // X_COLUMNS\n            k = element % X_COLUMNS"
            place = "(first_token + t).to(gl.int64) * ldx + (start + k)"
        else:
            split = f"t = element % {self.tokens}\n            k = element // {self.tokens}"
            place = "(start + k).to(gl.int64) * ldx + (first_token + t)"
        bits = (
            "value.to(gl.int16, bitcast=True).to(gl.int32)" if size == 2 else "value.to(gl.int32)"
        )
        return f'''
@gluon.jit
def copy_x(target, x, start, limit, first_token, M, ldx):
    """Copy the tile of X whose first k is ``start``, element by element; beyond M and ``limit`` it is zero."""
    thread = gl.arange(0, {self.threads}, THREAD)
    for group in range(X_GROUPS):
        found = ()
        places = ()
        for e in gl.static_range(X_GROUP):
            element = thread + (group * X_GROUP + e) * {self.threads}
            {split}
            inside = (first_token + t < M) & (start + k < limit)
            value = gl.load(x + ({place}), mask=inside, other=0)
            found = found + ({bits},)
            vector = (k * {size} // 16) ^ (t & 7)
            places = places + (target + t * X_PITCH + vector * 16 + k * {size} % 16,)
        for e in gl.static_range(X_GROUP):
            store_element(places[e], found[e])
'''

    def setup(self, limit: str) -> list[str]:
        """Lines before the loop: what each thread copies. ``limit`` is the end of k."""
        base = "x + batch * x_batch" if self.batched else "x"
        if self.how == "elements":
            return [f"x_values = {base}", f"x_limit = {limit}"]
        size = BYTES[self.dtype]
        lines = [
            f"thread = gl.arange(0, {self.threads}, THREAD)",
            f"x_row = thread // {self._across}",
            f"x_column = thread % {self._across}",
            f"x_to = x_row * X_PITCH + ((x_column ^ {self._swizzle('x_row')}) * 16)",
            f"x_pitch = ldx * {size}",
        ]
        if self.how == "rows":
            return [
                *lines,
                "x_token = token_block * TOKENS + x_row",
                f"x_from = ({base}).to(gl.int64) + (x_token.to(gl.int64) * x_pitch + x_column * 16)",
                f"x_left = {limit} - x_column * {16 // size}",
                "x_tokens = M - x_token",
            ]
        return [
            *lines,
            "x_token = token_block * TOKENS + x_column * 8",
            f"x_from = ({base}).to(gl.int64) + (x_row.to(gl.int64) * x_pitch + x_token.to(gl.int64) * 2)",
            f"x_left = gl.where(x_token < M, {limit} - x_row, 0)",
            "x_tokens = 0",
        ]

    def copy(self, target: str, start: str) -> str:
        """The call that starts the copy of the tile whose first k is ``start`` (an int32 expression)."""
        if self.how == "elements":
            return f"copy_x({target}, x_values, {start}, x_limit, token_block * TOKENS, M, ldx)"
        if self.how == "rows":
            advance = f"({start}).to(gl.int64) * {BYTES[self.dtype]}"
        else:
            advance = f"({start}).to(gl.int64) * x_pitch"
        return f"copy_x({target}, {start}, {advance}, x_pitch, x_from, x_to, x_left, x_tokens)"

    def fragment(self, token_tile: str, first_step: str, layout: str, spread: str) -> list[str]:
        """Lines for ``x_even`` and ``x_odd``: the offset of a lane's part in the first and second of each two steps.

        ``token_tile`` counts eights of tokens, ``spread`` is a zero of the fragment's shape."""
        if self.transposed:
            inner = (
                f"({first_step}) * {self.step_bytes} + lane * X_PITCH"
                f" + (({token_tile}) ^ {self._swizzle('lane')}) * 16"
            )
            inners = (inner, f"{inner} + {self.step_bytes}")
        else:
            outer = f"(({token_tile}) * 8 + (lane & 7)) * X_PITCH + ({first_step}) * 64"
            inners = (
                f"{outer} + ((lane >> 3) ^ (lane & 7)) * 16",
                f"{outer} + (((lane >> 3) + 4) ^ (lane & 7)) * 16",
            )
        return [
            f"{name} = gl.set_auto_layout({inner}, {layout}) + {spread}"
            for name, inner in zip(("x_even", "x_odd"), inners, strict=True)
        ]
