"""What is said of the steps that a library computes."""

from __future__ import annotations

from collections.abc import Mapping

from sparsecc.formats import known_name, parse_format
from sparsecc.kernel import Library, Plan
from sparsecc.runtime import packs
from sparsecc.selection.engines import ENGINES

RESULTS = {
    "blas": "written in place",
    "scipy": "made by SciPy; copied where out= is given",
    "cublas": "written in place",
    "cusparse": "written in place",
    "cusparselt": "made by cuSPARSELt row by row of the weight; copied where out= is given or a kernel reads it on",
}
"""Where a library puts its result."""
NOTES = {
    "scipy": "SciPy copies a dense operand that does not lie row by row",
    "cublas": "sums are as torch's settings for cuBLAS say (allow_tf32, reduced precision reductions)",
    "cusparselt": "the dense operand is padded to a multiple of 8 tokens; the algorithm is searched once and kept",
}


def library_lines(step: Library, name: str, names: Mapping[int, str]) -> list[str]:
    """A step of an explanation."""
    launch, engine = step.launch, ENGINES[step.engine]
    fmt = known_name(parse_format(launch.format, len(launch.shape)))
    lines = [f"  {name} = {launch.source}  (library {engine.title}: {engine.call}, result {fmt})"]
    if launch.init is not None:
        lines.append(f"    start: added to {names[launch.init]}, after the product")
    if launch.reason:
        lines.append(f"    format: {launch.reason}")
    lines.append(f"    result: {RESULTS[step.engine]}")
    for k, layout in step.packs:
        lines += packs.explained(names[launch.inputs[k]], layout)
    if step.engine in NOTES:
        lines.append(f"    note: {NOTES[step.engine]}")
    return lines


def no_code(plan: Plan, comment: str = "//") -> str:
    """What stands for the generated code of a plan that a library does all of."""
    lines = ["there is no generated code"]
    for step in plan.libraries:
        engine = ENGINES[step.engine]
        lines.append(f"{step.launch.source}: {engine.title}, {engine.call}")
    return "".join(f"{comment} {line}\n" for line in lines)
