"""generalize-named-ops: named linalg operations say what they compute, as ``linalg.generic``.

Before::

    %C = linalg.matmul ins(%A, %B : tensor<?x?xf64, #CSR>, tensor<?x?xf64>) outs(%zeros : …) -> tensor<?x?xf64>

After::

    %C = linalg.generic {indexing_maps = [(i, j, k) -> (i, k), (k, j), (i, j)], …, doc = "linalg.matmul"}
        ins(%A, %B : …) outs(%zeros : …) { mulf, addf } -> tensor<?x?xf64>

``linalg.fill`` stays: it says what a result starts from.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.ops import FillOp, GenericOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter


@dataclass(frozen=True)
class GeneralizeNamedOps(ModulePass):
    """Named linalg operations -> linalg.generic."""

    name = "generalize-named-ops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for named in list(op.walk()):
            if not isinstance(named, LinalgStructuredOperation) or isinstance(
                named, GenericOp | FillOp
            ):
                continue
            generic = GenericOp(
                named.inputs,
                named.outputs,
                named.body.clone(),
                named.get_indexing_maps(),
                named.get_iterator_types(),
                named.res.types,
                doc=StringAttr(named.name),
            )
            generic.attributes |= {
                key: value for key, value in named.attributes.items() if key.startswith("sparsecc.")
            }
            generic.location = named.location
            Rewriter.replace_op(named, generic)
