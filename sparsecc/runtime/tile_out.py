"""Memory that is given for a result of a GPU kernel: what can't take it is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from sparsecc.kernel import Launch, Step, launch_of
from sparsecc.runtime.call_checks import unwritable
from sparsecc.runtime.compiled_kernel import BadOutput
from sparsecc.runtime.extents import result_shape
from sparsecc.runtime.machines import TORCH, Machine, is_torch
from sparsecc.runtime.tile_operands import Bound
from sparsecc.runtime.torch_guards import refuse_unfit


def check_out(out: Any, last: Step | None, machine: Machine, tensors: Sequence[object]) -> None:
    """Raise for what can't take the result of a program's last step: BadOutput, NeedsGrad, NotPlain, WrongDevice."""
    launch = launch_of(last)
    problem = ""
    if launch is None or launch.assembly != "dense":
        problem = "the result is not dense"
    elif launch.init is not None or any(launch.fill) or not launch.covers:
        problem = "the kernel adds to the result"
    if problem or launch is None:
        raise BadOutput(problem=problem, dtype="", shape="", help="leave out= away")
    problem = _problem(out, launch, machine, tensors)
    if not problem and any(t.overlaps(out) for t in tensors if isinstance(t, Bound)):
        problem = "it shares memory with an operand"
    if problem:
        raise BadOutput(problem=problem, dtype=launch.dtype, shape=_shape(launch, tensors))


def _shape(launch: Launch, tensors: Sequence[object]) -> tuple[int | None, ...]:
    """The shape of the result: as operands say it, where the launch reads nothing else."""
    if any(number >= len(tensors) for number in launch.inputs):
        return launch.static
    return result_shape(launch, cast("Sequence[Bound]", tensors))


def _problem(out: Any, launch: Launch, machine: Machine, tensors: Sequence[object]) -> str:
    if is_torch(out):
        refuse_unfit("out=", out)
        machine.check("out", out)
        dtype, contiguous = str(out.dtype), bool(out.is_contiguous())
    elif machine.interprets and type(out) is np.ndarray:
        array: npt.NDArray[Any] = out
        if bad := unwritable(array):
            return bad
        dtype, contiguous = f"torch.{array.dtype.name}", bool(array.flags.c_contiguous)
    else:
        help = "pass a torch tensor on the GPU" if not machine.interprets else ""
        problem = f"it is a {type(out).__name__}"
        raise BadOutput(
            problem=problem, dtype=launch.dtype, shape=_shape(launch, tensors), help=help
        )
    if dtype != f"torch.{TORCH[launch.dtype]}":
        return f"it is no array of {launch.dtype}"
    return "" if contiguous else "it is not contiguous"
