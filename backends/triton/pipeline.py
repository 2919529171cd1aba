"""A GPU's passes by stage, outer to inner. Names only: the conductor looks them up."""

STAGES: dict[str, tuple[str, ...]] = {
    "tensor": (),
    "selected": (
        "generalize-named-ops",
        "select-formats",
        "match-contractions",
        "row-contractions",
    ),
    "iteration": ("split-blocks", "schedule-loops", "sparsify"),
    "tiles": ("tile-iteration",),
}

OPTIONS: dict[str, tuple[str, ...]] = {
    "match-contractions": ("target", "tokens", "rows", "reduction", "aligned", "steps"),
    "row-contractions": ("target", "tokens", "reduction", "length", "skewed", "even"),
}
"""What passes are told of the request."""

FAMILIES: dict[str, str] = {
    "loops": "tile-iteration",
    **dict.fromkeys(
        ("row_segments", "row_groups", "row_bins", "sampled_rows", "sampled_entries"),
        "row-contractions",
    ),
}
"""Families of schedules whose numbers are options of the pass that makes such kernels; the emitter reads the others."""
