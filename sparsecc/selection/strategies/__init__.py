"""The strategies that ship. Those of other packages are entry points of the group ``sparsecc.strategies``."""

STRATEGIES: dict[str, str] = {
    "fixed": "sparsecc.selection.strategies.plain:Fixed",
    "always-dense": "sparsecc.selection.strategies.plain:AlwaysDense",
    "bytes": "sparsecc.selection.strategies.plain:Bytes",
    "roofline": "sparsecc.selection.strategies.predicted:Roofline",
    "tree": "sparsecc.selection.strategies.tree:Tree",
    "autotune": "sparsecc.selection.strategies.measured:Autotune",
    "oracle": "sparsecc.selection.strategies.measured:Oracle",
}
"""Name -> ``module:Class``."""
DEFAULT = "roofline"
