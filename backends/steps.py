"""Steps of a plan from the operations that they stand for: what is launched, and what a library is called for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, DictionaryAttr, StringAttr, TensorType
from xdsl.ir import Attribute

from sparsecc.diagnostics import UnsupportedError
from sparsecc.dialects import iteration
from sparsecc.dialects.reading import dtype_name, elements, strings
from sparsecc.dialects.sparse_tensor import EncodingAttr
from sparsecc.dialects.sparse_tensor.types import ranked_tensor
from sparsecc.formats import Format, dense_format, known_name
from sparsecc.kernel import Launch, Library, TileLaunch, TileSource
from sparsecc.selection.engines import ENGINES, is_plain


class HostOperation(UnsupportedError):
    text = "the operation {name} in @{function} is not compiled yet"
    help_text = (
        "functions may hold linalg.generic and named linalg operations, tensor.empty, linalg.fill "
        "and conversions"
    )


def dtype_of(element: Attribute) -> str:
    """``f64`` … of an element type. Raises HostOperation."""
    found = dtype_name(element)
    if found is None:
        raise HostOperation(name=str(element), function="main")
    return found


def type_format(type_: TensorType[Attribute]) -> Format:
    encoding = type_.encoding
    if isinstance(encoding, EncodingAttr) and encoding.data is not None:
        return encoding.data
    return dense_format(len(type_.shape.data))


Extents = tuple[tuple[str, tuple[tuple[int, int], ...]], ...]
"""Groups of dimensions that have one extent, by the name of their index."""


PACKED = {"packed": "", "words": "bitmap"}
"""Roles that only packed operands have, and the layout's name where it is not the format's."""


def tile_launch(
    launch: Launch,
    kernel: func.FuncOp,
    source: TileSource,
    formats: Mapping[int, Format],
) -> TileLaunch:
    """A GPU kernel's launch, with its schedule and those that it could have had."""
    form, schedule = kernel.attributes.get("tile.form"), kernel.attributes.get("tile.schedule")
    space = elements(kernel.attributes.get("tile.space"))
    packed = [
        (int(owner.removeprefix("in")), PACKED[what])
        for owner, _, what in (role.partition(".") for role in source.roles)
        if what in PACKED
    ]
    tabled = kernel.attributes.get("tile.packs")
    layouts = tabled.data.items() if isinstance(tabled, DictionaryAttr) else ()
    packed += [
        (int(owner.removeprefix("in")), layout.data)
        for owner, layout in layouts
        if isinstance(layout, StringAttr)
    ]
    return TileLaunch(
        launch=launch,
        source=source,
        packs=tuple(
            (k, layout or known_name(formats[launch.inputs[k]].with_widths(0, 0)))
            for k, layout in packed
        ),
        sizes=_sizes(launch, source, strings(kernel.attributes.get("tile.sizes"))),
        form=form.data if isinstance(form, StringAttr) else "blocks",
        schedule="" if schedule is None else str(schedule),
        space=tuple(str(s) for s in space),
    )


def _sizes(launch: Launch, source: TileSource, named: list[str]) -> tuple[int, int, int] | None:
    """The groups of dimensions that count a contraction's tokens, rows and reduction: those of the indices that the
    kernel names in ``tile.sizes``, or of its arguments ``M N K``."""
    groups = [name for name, _ in launch.extents]
    if len(named) == 3 and set(named) <= set(groups):
        return (groups.index(named[0]), groups.index(named[1]), groups.index(named[2]))
    roles = dict(zip((name for name, _ in source.arguments), source.roles, strict=True))
    found: list[int] = []
    for name in ("M", "N", "K"):
        owner, _, dim = roles.get(name, "").partition(".dim")
        if not dim:
            return None
        if owner == "out":
            found.append(launch.shape[int(dim)])
            continue
        at = (launch.inputs[int(owner.removeprefix("in"))], int(dim))
        found.append(next(n for n, (_, dims) in enumerate(launch.extents) if at in dims))
    return (found[0], found[1], found[2])


def library_step(
    op: iteration.LibraryCallOp,
    inputs: Sequence[int],
    init: int | None,
    dest: int,
    extents: Extents,
    shape: tuple[int, ...],
) -> Library:
    """A library's call, on numbered tensors."""
    type_ = ranked_tensor(op.result.type)
    assert type_ is not None
    source, reason = (
        op.attributes.get("sparsecc.source"),
        op.attributes.get("sparsecc.format_reason"),
    )
    name = op.engine.data
    launch = Launch(
        kernel=name,
        inputs=tuple(inputs),
        init=init,
        fill=(0,),
        dest=dest,
        assembly="dense",
        pattern=None,
        covers=True,
        bound=None,
        extents=extents,
        shape=shape,
        static=tuple(None if d.data == DYNAMIC_INDEX else d.data for d in type_.shape.data),
        format=str(type_format(type_)),
        dtype=dtype_of(type_.element_type),
        roles=(),
        count_roles=(),
        source=source.data if isinstance(source, StringAttr) else f"a product by {name}",
        order=(),
        reason=reason.data if isinstance(reason, StringAttr) else "",
    )
    layout = ENGINES[name].layout
    formats = [type_format(t) for v in op.inputs if (t := ranked_tensor(v.type)) is not None]
    sparse = next((k for k, fmt in enumerate(formats) if not is_plain(fmt)), None)
    packs = () if sparse is None or not layout else ((sparse, layout),)
    return Library(launch, name, tuple(map(tuple, op.names)), sparse, packs)
