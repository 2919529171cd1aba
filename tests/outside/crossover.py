"""crossover: a strategy of somebody else's package, which looks at the density and at the blocks.

It knows ``sparsecc.selection`` and no compiler."""

from __future__ import annotations

from collections.abc import Sequence

from sparsecc.selection.candidate import Candidate, Ranked
from sparsecc.selection.problem import Problem


class Crossover:
    """Blocks where they are full, dense where there is much, CSR elsewhere; then what the cost model says."""

    name = "crossover"
    dense_from = 0.4
    block_from = 0.6

    def rank(self, problem: Problem) -> Sequence[Ranked]:
        wanted = self.wanted(problem)

        def key(ranked: Ranked) -> tuple[bool, float]:
            formats = [fmt for _, fmt in ranked.candidate.formats]
            return formats != [wanted], ranked.seconds or 0.0

        return sorted((self.explained(problem, c) for c in problem.candidates), key=key)

    def wanted(self, problem: Problem) -> str:
        """The format of the one open tensor whose entries are there; a result gets what is inferred."""
        open_ones = (t.statistics for t in problem.tensors.values() if t.open)
        known = next((found for found in open_ones if found is not None), None)
        if known is None or len(known.shape) != 2:
            return "CSF"
        if known.density >= self.dense_from:
            return "dense"
        block = known.block(4, 4)
        return "BSR(4,4)" if block is not None and block.fill >= self.block_from else "CSR"

    def explained(self, problem: Problem, candidate: Candidate) -> Ranked:
        """The model's prediction, which orders plans of one format: a library may be faster than we are."""
        found = problem.predict(candidate)
        return Ranked(candidate, found.seconds, found.terms, "by density and blocks")
