"""The formats that the CPU's loops walk as they are.

What they do not walk is converted at each call (``schedule-loops`` says so): never better than to convert it once, so
such plans are refused here. Formats by operation:

==========  ==========================================================================================
SpMV        dense, CSR, CSC, COO, DCSR, DCSC, BSR, ELL
SpMM        the same; where the result is stored by the matrix's rows its entries must come by rows, and blocks need it
SDDMM       CSR, CSC, COO, DCSR, BSR, ELL, dense; into CSR those whose entries come in its order
MTTKRP      CSF in any order, COO(3), dense
others      dense, CSR, CSC, DCSR, with one sparse operand COO and ELL too; of rank 3 and more CSF, COO, dense
==========  ==========================================================================================
"""

from __future__ import annotations

from itertools import permutations

from sparsecc.selection.candidate import Refusal
from sparsecc.selection.operations import (
    GENERAL,
    MTTKRP,
    SDDMM,
    SPMM,
    SPMV,
    Operation,
    is_sparse,
    operation_of,
)
from sparsecc.selection.problem import Expression, Problem, Tensor
from sparsecc.selection.spaces.space import Found

BLOCKS = tuple(f"BSR({r},{c})" for r, c in ((2, 2), (4, 4), (8, 8), (4, 1)))
MATRIX = ("dense", "CSR", "CSC", "COO", "DCSR", "DCSC", *BLOCKS, "ELL", "2:4", "BITMAP")
IN_ORDER_OF_ROWS = ("CSR", "COO", "DCSR", "ELL")
AT_EACH_CALL = "loops would convert it to CSR at each call: "


class CpuRules:
    """Formats on a CPU."""

    def formats(self, problem: Problem, expression: Expression, tensor: Tensor) -> Found:
        operation = operation_of(problem, expression, tensor.name)
        rank = len(tensor.shape)
        if operation.kind == MTTKRP:
            orders = [
                "CSF" if order == (0, 1, 2) else f"CSF({','.join(map(str, order))})"
                for order in permutations(range(3))
            ]
            return ["dense", *orders, "COO(3)"], []
        if rank != 2:
            return ["dense", "CSF", f"COO({rank})"], []
        legal: list[str] = []
        refusals: list[Refusal] = []
        for fmt in MATRIX:
            refused = self._refused(problem, operation, tensor, fmt)
            if refused is None:
                legal.append(fmt)
            elif refused[0]:
                refusals.append(Refusal(f"{tensor.name}={fmt}", *refused))
        return legal, refusals

    def _refused(
        self, problem: Problem, operation: Operation, tensor: Tensor, fmt: str
    ) -> tuple[str, str] | None:
        """Reason and remedy; an empty reason where nobody would think of the format."""
        if fmt == "2:4":
            return AT_EACH_CALL + "they walk no groups of four", "store it as CSR"
        if fmt == "BITMAP":
            return (
                AT_EACH_CALL + "a bitmap can be looked up, not walked",
                "store it as CSR, or as dense where half of it is full",
            )
        if operation.kind == SPMM:
            return _product(operation, fmt)
        if operation.kind == SPMV:
            return None
        if operation.kind == SDDMM:
            return _sampled(problem, operation, fmt)
        assert operation.kind == GENERAL
        return _general(problem, operation, tensor, fmt)


def _product(operation: Operation, fmt: str) -> tuple[str, str] | None:
    by_rows, order = operation.by_rows, operation.out_order
    against = AT_EACH_CALL + "its levels go against the order of loops"
    if fmt.startswith("BSR"):
        if order == "tn":
            return against, "store the result by the rows of the matrix (transpose it)"
        return None if by_rows else (against, "transpose the matrix once")
    if order == "tn":
        return None
    if by_rows:
        return (against, "take CSR") if fmt == "CSC" else None
    return (against, "take CSC") if fmt in ("CSR", "ELL") else None


def _sampled(problem: Problem, operation: Operation, fmt: str) -> tuple[str, str] | None:
    result = problem.tensors[operation.expression.result.name].format
    if fmt == "DCSC":
        return "", ""
    if result is None or fmt == result:
        return None
    if fmt == "dense":
        return (
            f"each cell would be an entry of the result, which is {result}",
            "ask for a dense result",
        )
    if result == "CSR" and fmt in IN_ORDER_OF_ROWS:
        return None
    return f"the result is {result}: one of the two would be converted at each call", "take CSR"


def _general(
    problem: Problem, operation: Operation, tensor: Tensor, fmt: str
) -> tuple[str, str] | None:
    if fmt in ("dense", "CSR", "CSC", "DCSR"):
        return None
    several = any(
        is_sparse(problem.tensors[a.name]) for a in operation.dense if a.name != tensor.name
    )
    if fmt in ("COO", "ELL") and not several and operation.matrix is not None:
        return None
    if fmt == "COO" and several:
        return "its rows would be searched again for each entry of another tensor", "take CSR"
    if fmt.startswith("BSR") and not several:
        return AT_EACH_CALL + "its blocks", "write it as a product with one matrix, or take CSR"
    return "", ""
