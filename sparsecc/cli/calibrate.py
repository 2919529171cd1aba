"""``sparsecc calibrate``: measure this machine's rates, from which plans are ranked."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

from sparsecc.cli.output import note, write_text
from sparsecc.diagnostics import UsageError
from sparsecc.research.calibrate import calibrate as measure
from sparsecc.selection.calibrations import forget, user_file
from sparsecc.targets import code_target


class NowhereToWrite(UsageError):
    text = "the cache is switched off, so there is no folder that calibrations are found in"
    help_text = "name a file with -o, and name it in SPARSECC_CALIBRATION when you compile"


def calibrate(options: Namespace) -> None:
    """Measure, and write the calibration; the errors of the model go to stdout."""
    target = code_target(options.target).name
    path = Path(options.output) if options.output else user_file(target)
    if path is None:
        raise NowhereToWrite()
    found = measure(target, options.seconds)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(found.to_json(), indent=1) + "\n")
    forget()
    note(f"wrote {path}")
    print(f"{'kernel family':24} {'plans':>6} {'median error':>13} {'90 %':>8}")
    for family, error in sorted(found.errors.items()):
        print(f"{family:24} {error.count:6} {error.median:13.1%} {error.p90:8.1%}")
