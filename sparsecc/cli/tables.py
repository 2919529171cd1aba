"""The commands that list what there is: formats, targets, passes, strategies."""

from __future__ import annotations

from argparse import Namespace

from sparsecc.cli.output import show_json, table

ARGUMENTS = {"BSR": "(4,4)", "NM": "(2,4)"}
"""Arguments for the example of a format that is none without."""


def formats(options: Namespace) -> None:
    """``sparsecc formats``: names, and the level types that maps are made of."""
    from sparsecc.formats import parse_format
    from sparsecc.formats.levels import level_names
    from sparsecc.formats.names import NAMES

    spelled = [name + ARGUMENTS.get(name, "") for name in NAMES]
    rows = [
        (text, NAMES[name][2], str(parse_format(text)))
        for name, text in zip(NAMES, spelled, strict=True)
    ]
    if options.json:
        show_json(
            {
                "formats": [
                    {"name": name, "what": what, "map": levels} for name, what, levels in rows
                ],
                "levels": level_names(),
            }
        )
        return
    table(("format", "what it is", "levels"), rows)
    print()
    table(("level type", "where"), sorted(level_names().items()))


def targets(options: Namespace) -> None:
    """``sparsecc targets``: the machines that programs can be compiled for."""
    from sparsecc.targets import ALIASES, TARGETS

    if options.json:
        show_json(
            {
                name: {
                    "title": target.title,
                    "backend": target.backend,
                    "generates": target.generates,
                    "abilities": sorted(ability.name for ability in target.abilities),
                    "dtypes": sorted(target.dtypes),
                    "rates": {
                        key: {"value": rate.value, "unit": rate.unit, "origin": rate.origin}
                        for key, rate in target.rates
                    },
                }
                for name, target in TARGETS.items()
            }
        )
        return
    table(
        ("target", "what it is", "code", "abilities"),
        [
            (
                name,
                target.title,
                "yes" if target.generates else "not yet",
                ", ".join(sorted(ability.name for ability in target.abilities)),
            )
            for name, target in TARGETS.items()
        ],
    )
    print(f"\ngpu: the GPU that is present; {' '.join(ALIASES)}: run the code of sm_80")


def passes(options: Namespace) -> None:
    """``sparsecc passes``: those that ship and those of installed packages."""
    from sparsecc import plugins

    known = plugins.passes()
    if options.json:
        show_json(known)
    else:
        table(("pass", "where"), sorted(known.items()))


def strategies(options: Namespace) -> None:
    """``sparsecc strategies``: how formats are chosen."""
    from sparsecc import plugins

    known = plugins.strategies()
    if options.json:
        show_json(known)
    else:
        table(("strategy", "where"), sorted(known.items()))
