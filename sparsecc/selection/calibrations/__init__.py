"""Measured rates of machines: one JSON file a target, shipped or of the user.

A calibration says what a unit of each kind of work costs, by kernel family: ``{"spmv-rows": {"entry": 4.1e-10, …}}``,
in seconds a unit. ``costs`` says what units there are. That of a target is looked for in

1. the file that ``SPARSECC_CALIBRATION`` names, if it is for the target,
2. ``calibrations/TARGET.json`` in the cache folder (``SPARSECC_CACHE``, else ``~/.cache/sparsecc``), where ``sparsecc
   calibrate`` writes it,
3. this package.

A GPU that none of them has gets the rates of one that has been measured, scaled by what the data of both targets say
(:func:`derived`)."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, cast

from sparsecc.diagnostics import FileError, TargetError
from sparsecc.targets import TARGETS, Target

VERSION = 1
VARIABLE = "SPARSECC_CALIBRATION"
UNKNOWN = 0.3
"""The doubt of a family that was not measured."""
MEASURED_GPU = "sm_90"
LARGEST = 1 << 20
"""Bytes of a file beyond which it can't be one of ours."""


class BadCalibration(FileError):
    text = "this is no calibration: {problem}"
    help_text = "make one with 'sparsecc calibrate --target {target} -o FILE'"


class NotCalibrated(TargetError):
    text = "the rates of {target} are not known, so no plan can be ranked by time"
    help_text = (
        "measure them with 'sparsecc calibrate --target {target}', or name another strategy: bytes"
    )


@dataclass(frozen=True)
class Error:
    """How far predictions were from measured times: the ratio's distance from 1, as ``exp(|log|) - 1``."""

    count: int
    median: float
    p90: float


@dataclass(frozen=True)
class Calibration:
    """What work costs on a machine. Seconds a unit; sizes in bytes."""

    target: str
    machine: str
    date: str
    sizes: Mapping[str, float]
    """Of caches: ``l1 l2 l3``; of a GPU also ``processors``."""
    families: Mapping[str, Mapping[str, float]]
    errors: Mapping[str, Error] = field(default_factory=dict[str, Error])
    """Predicted against measured, by family, where it was compared with a table."""
    doubts: Mapping[str, float] = field(default_factory=dict[str, float])
    """By family: how far predictions were from the times that they were fitted to, beside other plans of the same
    problem; the mean of ``|log|``. A choice is made with caution, by them."""
    source: str = ""
    """The file, for messages."""

    def doubt(self, family: str) -> float:
        """How far a prediction of a family is off, about; UNKNOWN of one that nobody has measured."""
        return self.doubts.get(family, UNKNOWN)

    def cost(self, family: str, unit: str) -> float:
        """Seconds of a unit of a family's work. Raises BadCalibration if the file lacks it."""
        try:
            return self.families[family][unit]
        except KeyError:
            raise BadCalibration(
                place=self.source or self.target,
                problem=f"it lacks {unit!r} of the family {family!r}",
                target=self.target,
            ) from None

    def rounded(self) -> Calibration:
        """Costs and errors with four digits: nobody measures more."""

        def four(x: float) -> float:
            return float(f"{x:.4g}")

        families = {f: {u: four(c) for u, c in units.items()} for f, units in self.families.items()}
        errors = {f: Error(e.count, four(e.median), four(e.p90)) for f, e in self.errors.items()}
        doubts = {f: four(x) for f, x in self.doubts.items()}
        return replace(self, families=families, errors=errors, doubts=doubts)

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        del data["source"]
        return {"version": VERSION, **data}

    @staticmethod
    def from_json(data: object, place: str = "", target: str = "cpu") -> Calibration:
        """The calibration of parsed JSON. Raises BadCalibration, which names what is wrong."""

        def wrong(problem: str) -> BadCalibration:
            return BadCalibration(place=place, problem=problem, target=target)

        if not isinstance(data, dict):
            raise wrong("it is not an object")
        fields = cast("dict[str, Any]", data)
        if fields.get("version") != VERSION:
            raise wrong(f"its version is {fields.get('version')!r}, not {VERSION}")
        for key in ("target", "machine", "date"):
            if not isinstance(fields.get(key), str):
                raise wrong(f"{key!r} is not a string")
        sizes = _numbers(fields.get("sizes"), "sizes", wrong)
        families = fields.get("families")
        if not isinstance(families, dict) or not families:
            raise wrong("'families' is not an object with families in it")
        read = {
            str(name): _numbers(units, f"family {name!r}", wrong)
            for name, units in cast("dict[str, Any]", families).items()
        }
        errors = fields.get("errors", {})
        try:
            known = {str(k): Error(**v) for k, v in errors.items()}
        except (TypeError, AttributeError):
            raise wrong("'errors' has no count, median and p90 by family") from None
        doubts = _numbers(fields.get("doubts", {}), "doubts", wrong)
        return Calibration(
            fields["target"], fields["machine"], fields["date"], sizes, read, known, doubts, place
        )


def _numbers(found: object, what: str, wrong: Any) -> dict[str, float]:
    """A mapping of names to finite numbers that are not negative."""
    if not isinstance(found, dict):
        raise wrong(f"{what} is not an object of numbers")
    for name, value in cast("dict[object, object]", found).items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(cast(float, value)) or cast(float, value) < 0:
            raise wrong(f"{what} has {value!r} for {name!r}, which is no number of 0 or more")
    return {str(k): float(v) for k, v in cast("dict[str, float]", found).items()}


def read_calibration(path: Path, target: str = "cpu") -> Calibration:
    """The calibration in a file. Raises BadCalibration, OSError."""
    if path.stat().st_size > LARGEST:
        raise BadCalibration(
            place=str(path), problem=f"it has more than {LARGEST} bytes", target=target
        )
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadCalibration(place=str(path), problem=str(error), target=target) from None
    return Calibration.from_json(data, str(path), target)


def user_file(target: str) -> Path | None:
    """Where ``sparsecc calibrate`` keeps what it measured; None if there is no cache folder."""
    cache = _cache_folder()
    return Path(cache) / "calibrations" / f"{target}.json" if cache else None


def _cache_folder() -> str:
    """The folder of the kernel cache; empty if it is off."""
    named = os.environ.get("SPARSECC_CACHE")
    if named is not None:
        return named
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "sparsecc")


def calibration_of(target: str) -> Calibration:
    """The calibration of a target. Raises NotCalibrated, BadCalibration."""
    named = os.environ.get(VARIABLE, "")
    return _calibration(target, named, _cache_folder())


@lru_cache(maxsize=32)
def _calibration(target: str, named: str, _cache: str) -> Calibration:
    if named:
        path = Path(named)
        if not path.is_file():
            raise BadCalibration(
                place=named, problem=f"there is no such file ({VARIABLE} names it)", target=target
            )
        found = read_calibration(path, target)
        if found.target == target:
            return found
    own = user_file(target)
    if own is not None and own.is_file():
        return read_calibration(own, target)
    if _shipped(target).is_file():
        return _read_shipped(target)
    if target in TARGETS and TARGETS[target].backend == TARGETS[MEASURED_GPU].backend:
        return derived(_read_shipped(MEASURED_GPU), TARGETS[target])
    raise NotCalibrated(target=target)


def _shipped(target: str) -> Traversable:
    return files(__name__).joinpath(f"{target}.json")


def _read_shipped(target: str) -> Calibration:
    text = _shipped(target).read_text(encoding="utf-8")
    return Calibration.from_json(json.loads(text), f"{target}.json", target)


def derived(known: Calibration, target: Target) -> Calibration:
    """The rates of another GPU: memory by its bandwidth, matrix units by their operations, everything else by
    processors and clock. Raises NotCalibrated where the data of one of the two lack a number."""
    ratios: dict[str, float] = {}
    for name in ("bandwidth", "half_flops", "processors", "clock"):
        one, other = TARGETS[known.target].rate(name), target.rate(name)
        if one is None or other is None:
            raise NotCalibrated(target=target.name)
        ratios[name] = one.value / other.value
    speed = ratios["processors"] * ratios["clock"]
    by_unit = {"mac": ratios["half_flops"], "call": 1.0, "split": 1.0}
    by_unit |= dict.fromkeys(("cold", "warm", "x_dram"), ratios["bandwidth"])
    families = {
        family: {unit: cost * by_unit.get(unit, speed) for unit, cost in units.items()}
        for family, units in known.families.items()
    }
    processors = round(known.sizes["processors"] / ratios["processors"])
    sizes = {**known.sizes, "processors": float(processors)}
    machine = f"not measured: {known.target}, scaled by data sheets"
    return Calibration(
        target.name, machine, known.date, sizes, families, {}, known.doubts, known.source
    )


def forget() -> None:
    """Read files anew from now on."""
    _calibration.cache_clear()
