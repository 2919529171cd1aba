"""Values of a term at a place in the loop nest: where operands may be missing, and what is missing then.

A missing factor annihilates: ``missing * inf`` is missing, while a stored 0 follows IEEE. So a value comes with
its presence, and is replaced by 0 where that does not hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import arith, complex, tensor
from xdsl.dialects.builtin import AnyFloat, ComplexType, FloatAttr, IntegerAttr, IntegerType, i1
from xdsl.ir import Attribute, Block, Operation, SSAValue

from sparsecc.dialects import iteration
from sparsecc.dialects.iteration.subscripts import Subscript
from sparsecc.passes.sparsification import merge_lattice
from sparsecc.passes.sparsification.term import (
    ADDITION_FOR,
    GenericView,
    Node,
    NotSparsifiable,
    Structure,
)


@dataclass(frozen=True)
class State:
    """What is known at a place in the loop nest: for each input its cursor, how many of its levels are
    behind, whether it may be missing (``dynamic``) or is missing (``absent``); and the bound coordinates."""

    cursors: tuple[SSAValue, ...]
    depth: tuple[int, ...]
    coordinates: tuple[SSAValue | None, ...]
    dynamic: frozenset[int] = frozenset()
    absent: frozenset[int] = frozenset()
    certain: bool = False
    """The innermost loop visits just the coordinates where the term is stored."""

    def bound(self) -> frozenset[int]:
        return frozenset(k for k, c in enumerate(self.coordinates) if c is not None)


@dataclass(frozen=True)
class Result:
    """A value, when it is stored (None: always), and whether it is 0 wherever it is not."""

    value: SSAValue
    present: SSAValue | None = None
    clean: bool = True


def zero_ops(element: Attribute) -> list[Operation]:
    """Operations that make the 0 of an element type; the last one's result is it."""
    match element:
        case ComplexType():
            assert isinstance(element.element_type, AnyFloat)
            part = arith.ConstantOp(FloatAttr(0.0, element.element_type))
            return [part, complex.CreateOp(part.result, part.result, element)]
        case IntegerType():
            return [arith.ConstantOp(IntegerAttr(0, element))]
        case _:
            assert isinstance(element, AnyFloat)
            return [arith.ConstantOp(FloatAttr(0.0, element))]


class TermValues:
    """Appends operations to ``block``; evaluates nodes of the view's term."""

    def __init__(self, view: GenericView, entry: Block) -> None:
        self.view = view
        self.block = self.entry = entry
        self.tensors, self.out = entry.args[:-1], entry.args[-1]
        self.dense = {a.operand: a.format.is_dense for a in view.inputs}
        self.zeros: dict[Attribute, SSAValue] = {}
        self.memo: dict[Block, dict[Node, Result | None]] = {}

    # -- operations ----------------------------------------------------------------------------

    def add(self, op: Operation, hint: str = "") -> SSAValue:
        self.block.add_op(op)
        if hint:
            op.results[0].name_hint = hint
        return op.results[0]

    def end(self, op: Operation) -> None:
        self.block.add_op(op)

    def apply(self, template: Operation, args: Sequence[SSAValue]) -> SSAValue:
        """A copy of an operation of the body on other operands."""
        return self.add(
            template.create(
                operands=list(args),
                result_types=[r.type for r in template.results],
                properties=dict(template.properties),
                attributes=dict(template.attributes),
            )
        )

    def zero(self, element: Attribute) -> SSAValue:
        """The 0 of a type, made once at the top of the kernel."""
        if element not in self.zeros:
            ops = zero_ops(element)
            first = self.entry.first_op
            for op in ops:
                if first is None:
                    self.entry.add_op(op)
                else:
                    self.entry.insert_op_before(op, first)
            self.zeros[element] = ops[-1].results[0]
            ops[-1].results[0].name_hint = "zero"
        return self.zeros[element]

    def true(self) -> SSAValue:
        return self.add(arith.ConstantOp(IntegerAttr(1, i1)), "true")

    # -- subscripts ----------------------------------------------------------------------------

    def dim(self, value: SSAValue, dim: int, hint: str = "") -> SSAValue:
        """The extent of a dimension."""
        number = self.add(arith.ConstantOp(IntegerAttr.from_index_int_value(dim)))
        return self.add(tensor.DimOp(value, number), hint)

    def coordinate(self, subscript: Subscript, state: State) -> SSAValue:
        """The value of a subscript whose loops are all bound."""
        total: SSAValue | None = None
        for loop, stride in subscript:
            term = state.coordinates[loop]
            assert term is not None
            if stride != 1:
                number = self.add(arith.ConstantOp(IntegerAttr.from_index_int_value(stride)))
                term = self.add(arith.MuliOp(term, number))
            total = term if total is None else self.add(arith.AddiOp(total, term))
        assert total is not None
        return total

    def inside(self, loop: int, state: State) -> SSAValue | None:
        """Whether the sums of loops that are complete with this one lie inside their dimensions: the last block
        of a dimension may reach beyond it. None if there are none."""
        flag: SSAValue | None = None
        seen: set[Subscript] = set()
        for value, access in zip(
            [*self.tensors, self.out], [*self.view.inputs, self.view.out], strict=True
        ):
            for dim, subscript in enumerate(access.subscripts):
                loops = [k for k, _ in subscript]
                complete = loop in loops and all(state.coordinates[k] is not None for k in loops)
                if access.dim_loop(dim) >= 0 or not complete or subscript in seen:
                    continue
                seen.add(subscript)
                at, extent = self.coordinate(subscript, state), self.dim(value, dim)
                flag = self.both(flag, self.add(arith.CmpiOp(at, extent, "slt")))
        return flag

    # -- values --------------------------------------------------------------------------------

    def evaluate(self, node: Node, state: State) -> Result | None:
        """The value of a term at bound coordinates; None if it is missing."""
        memo = self.memo.setdefault(self.block, {})
        if node not in memo:
            memo[node] = self.evaluate_anew(node, state)
        return memo[node]

    def evaluate_anew(self, node: Node, state: State) -> Result | None:
        match node.structure:
            case Structure.LEAF:
                k = node.operand
                if k in state.absent:
                    return None
                value = self.add(iteration.ValueOp(self.tensors[k], state.cursors[k], node.type))
                present = (
                    self.add(iteration.PresentOp(state.cursors[k])) if k in state.dynamic else None
                )
                return Result(value, present)
            case Structure.CONSTANT:
                assert node.op is not None
                return Result(self.apply(node.op, []))
            case Structure.CONJUNCTION:
                assert node.op is not None
                results = [self.evaluate(a, state) for a in node.args]
                if any(r is None for r in results):
                    return None
                a, b = (r for r in results if r is not None)
                return self.conjunction(node.op, a, b)
            case Structure.DISJUNCTION:
                return self.disjunction(node, state)
            case Structure.KEEP:
                return self.kept(node, state)
            case Structure.QUOTIENT:
                return self.quotient(node, state)
            case Structure.ANY:
                assert node.op is not None
                args = [self.value_or_zero(a, state) for a in node.args]
                return Result(self.apply(node.op, args))

    def value_or_zero(self, node: Node, state: State) -> SSAValue:
        result = self.evaluate(node, state)
        return self.zero(node.type) if result is None else self.guarded(result)

    def conjunction(self, op: Operation, a: Result, b: Result) -> Result:
        present = self.both(a.present, b.present)
        exact = isinstance(op.results[0].type, IntegerType)
        clean = present is None or (exact and (a.clean and b.clean))
        return Result(self.apply(op, [a.value, b.value]), present, clean)

    def disjunction(self, node: Node, state: State) -> Result | None:
        assert node.op is not None
        a, b = (self.evaluate(arg, state) for arg in node.args)
        if a is None and b is None:
            return None
        create = isinstance(node.op, complex.CreateOp)
        if b is None:
            if not create or a is None:
                return a
            zero = self.zero(node.args[1].type)
            return Result(self.apply(node.op, [self.guarded(a), zero]), a.present)
        if a is None:
            if not create and "sub" not in node.op.name:
                return b
            zero = self.zero(node.args[0].type)
            return Result(self.apply(node.op, [zero, self.guarded(b)]), b.present)
        present = self.either(a.present, b.present)
        return Result(self.apply(node.op, [self.guarded(a), self.guarded(b)]), present)

    def kept(self, node: Node, state: State) -> Result | None:
        assert node.op is not None
        values: list[SSAValue] = []
        present: SSAValue | None = None
        for arg in node.args:
            result = self.evaluate(arg, state)
            if result is None:
                return None
            if arg is node.kept:
                present = result.present
            values.append(self.guarded(result))
        # -0.0 is not the 0 of what is missing.
        return Result(
            self.apply(node.op, values), present, node.op.name not in ("arith.negf", "complex.neg")
        )

    def quotient(self, node: Node, state: State) -> Result | None:
        """x / y: a missing x over a y that is there is missing; over a missing y it is IEEE's 0 / 0."""
        assert node.op is not None
        above, below = node.args
        a, b = self.evaluate(above, state), self.evaluate(below, state)
        if merge_lattice.is_stored_everywhere(below, self.dense):
            return (
                None
                if a is None or b is None
                else replace(self.conjunction(node.op, a, b), clean=a.present is None)
            )
        value = self.apply(node.op, [
            self.zero(above.type) if a is None else self.guarded(a),
            self.zero(below.type) if b is None else self.guarded(b),
        ])  # fmt: skip
        if a is not None and a.present is None:
            return Result(value)
        # Where the numerator alone is missing, the quotient is 0 even over a stored 0.
        a_there = self.zero(i1) if a is None or a.present is None else a.present
        b_missing = self.true()
        if b is not None:
            b_there = self.true() if b.present is None else b.present
            b_missing = self.add(arith.XOrIOp(b_there, self.true()))
        keep = self.add(arith.OrIOp(a_there, b_missing))
        return Result(self.add(arith.SelectOp(keep, value, self.zero(node.type))), keep)

    def guarded(self, result: Result) -> SSAValue:
        """The value, 0 where it is missing."""
        if result.present is None or result.clean:
            return result.value
        return self.add(arith.SelectOp(result.present, result.value, self.zero(result.value.type)))

    def combine(self, total: SSAValue, value: SSAValue, innermost: bool) -> SSAValue:
        """One step of the reduction that the generic's body spells."""
        combine = self.view.combine
        if combine is None:
            raise NotSparsifiable(problem="a reduction loop without a reduction")
        if self.view.negated and not innermost:
            # What an inner loop gives is negative already.
            return self.add(ADDITION_FOR[combine.name](total, value))
        return self.apply(combine, [total, value])

    def distributes(self, product: Node) -> bool:
        """Whether a factor of the products that the body sums can be taken out of the sum."""
        assert product.op is not None and self.view.combine is not None
        bits = product.type == i1 or self.view.combine.name == "arith.ori"
        return (product.op.name == "arith.andi") == bits or product.type == i1

    def both(self, a: SSAValue | None, b: SSAValue | None) -> SSAValue | None:
        if a is None or b is None or a is b:
            return b if a is None else a
        return self.add(arith.AndIOp(a, b))

    def either(self, a: SSAValue | None, b: SSAValue | None) -> SSAValue | None:
        return None if a is None or b is None else self.add(arith.OrIOp(a, b))
