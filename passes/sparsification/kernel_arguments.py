"""The loop-level signature of a kernel: which buffer or size each argument is.

Roles are strings, kept in the function's attribute ``loops.args`` for the runtime::

    in0.values in0.positions1 in0.coordinates1 in0.dim0 in0.dim1 … out.values out.dim0
    out.positions1 out.coordinates1 work.values work.marker work.list counters
"""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerType, MemRefType
from xdsl.ir import Attribute, SSAValue

from sparsecc.formats import Format
from sparsecc.formats.builder import LevelCode

DEFAULT_WIDTH = 32
"""Bits of positions and coordinates where a format leaves them open."""


def buffer(element: Attribute) -> MemRefType[Attribute]:
    return MemRefType(element, [DYNAMIC_INDEX])


def width_type(width: int) -> Attribute:
    return IntegerType(width or DEFAULT_WIDTH)


class Arguments:
    """Collects roles and types, then answers where each argument is."""

    def __init__(self) -> None:
        self.roles: list[str] = []
        self.types: list[Attribute] = []
        self.values: dict[str, SSAValue] = {}

    def request(self, role: str, type_: Attribute) -> None:
        self.roles.append(role)
        self.types.append(type_)

    def request_arrays(self, owner: str, fmt: Format) -> None:
        for number, level in enumerate(fmt.levels):
            if "positions" in level.arrays:
                self.request(f"{owner}.positions{number}", buffer(width_type(fmt.pos_width)))
            if "coordinates" in level.arrays:
                self.request(f"{owner}.coordinates{number}", buffer(width_type(fmt.crd_width)))

    def request_dims(self, owner: str, rank: int) -> None:
        for dim in range(rank):
            self.request(f"{owner}.dim{dim}", IndexType())

    def bind(self, args: list[SSAValue]) -> None:
        for role, arg in zip(self.roles, args, strict=True):
            arg.name_hint = role.replace(".", "_")
            self.values[role] = arg

    def __getitem__(self, role: str) -> SSAValue:
        return self.values[role]

    def get(self, role: str) -> SSAValue | None:
        return self.values.get(role)

    def level_code(self, owner: str, level: int, size: SSAValue) -> LevelCode:
        return LevelCode(
            self.get(f"{owner}.positions{level}"), self.get(f"{owner}.coordinates{level}"), size
        )
