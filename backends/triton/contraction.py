"""A contraction with a packed weight as plain data: what the writers of fragment kernels read off a tile kernel.

``Y[t, n] = epilogue(sum over k of X[t, k] * W[n, k])``: ``n`` are the rows of the weight, ``t`` the tokens.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EpilogueStep:
    """One scalar operation on each element of the result: ``dest = op(arguments)``.

    ``op``: ``load`` (arguments: a tensor's name and which of ``n t`` it is indexed by), ``constant`` (a literal),
    ``cast`` (a value, a dtype) or an arith/math operation by its IR name (``arith.addf``, ``math.exp``); the first
    argument of ``arith.cmpf`` and ``arith.cmpi`` is the predicate."""

    dest: str
    op: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Contraction:
    """What a kernel of the fragments form computes, and how its operands lie."""

    name: str
    """The kernel's."""
    comments: tuple[str, ...]
    """The expression and the formats, for the head of the text."""
    target: str
    weight: str
    """``2:4``, or ``2:4+CSR`` (with the overflow of a group of four in a residual stream)."""
    dtype: str
    """Of X and W: ``f16``, ``bf16``, ``i8``."""
    accumulator: str
    """``f32`` or ``i32``."""
    out_dtype: str
    x_order: str
    """``tk``: k is contiguous; ``kt``: tokens are."""
    y_order: str
    """``tn``: rows are contiguous; ``nt``: tokens are."""
    batched: tuple[bool, bool]
    """Whether X and Y, and whether W, have a batch dimension before the others."""
    aligned: bool
    """Whether rows of X begin at multiples of 16 bytes and its contiguous extent is a multiple of 16 bytes (checked
    at each launch; otherwise X is read element by element)."""
    epilogue: tuple[EpilogueStep, ...]
    """From the sum ``acc``; the last step's ``dest`` (or ``acc``) is stored, cast to ``out_dtype``."""
    operands: tuple[tuple[str, str, str], ...] = ()
    """Tensors that the epilogue loads: name, dtype, and its indices in memory's order: ``n``, ``t``, ``tn``, ``nt``
    or none; ``b`` before them where it has one for each batch."""
    facts: tuple[tuple[str, int], ...] = ()
    """Numbers of the packing that the text depends on: ``steps``, ``entries`` (most entry vectors of a chunk)."""
