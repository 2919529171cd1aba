"""A GPU's passes by stage, outer to inner. Names only: the conductor looks them up."""

STAGES: dict[str, tuple[str, ...]] = {
    "tensor": (),
    "selected": (
        "generalize-named-ops", "select-formats", "call-libraries", "match-contractions", "dot-contractions",
        "row-contractions",
    ),
    "iteration": ("widen-sums", "split-blocks", "schedule-loops", "sparsify"),
    "tiles": ("tile-iteration",),
}  # fmt: skip

OPTIONS: dict[str, tuple[str, ...]] = {
    "call-libraries": ("target",),
    "match-contractions": ("target", "tokens", "rows", "reduction", "aligned", "steps"),
    "dot-contractions": ("target", "tokens", "even", "folded"),
    "row-contractions": ("target", "tokens", "reduction", "length", "skewed", "even", "folded"),
    "schedule-loops": ("target",),
}
"""What passes are told of the request."""

FIXED: dict[str, dict[str, str]] = {"widen-sums": {"split": "false"}}
"""Options that are the same for every request: sums stay in registers, so none is cut in two."""

NUMBERS: dict[str, str] = {"loops": "tile-iteration"}
"""Families of schedules whose numbers are options of the pass that makes such kernels."""
WHOLE: dict[str, str] = {
    **dict.fromkeys(("block_rows", "groups", "bitmap"), "dot-contractions"),
    **dict.fromkeys(
        ("row_segments", "row_sweeps", "row_groups", "row_bins", "sampled_rows", "sampled_entries"),
        "row-contractions",
    ),
}
"""Those that a pass takes as they print, as its option ``schedule``. The emitter reads all others."""
