"""The CPU's passes by stage, outer to inner. Names only: the conductor looks them up."""

STAGES: dict[str, tuple[str, ...]] = {
    "tensor": (),
    "selected": (
        "generalize-named-ops",
        "select-formats",
        "call-libraries",
        "widen-sums",
        "split-blocks",
        "schedule-loops",
    ),
    "iteration": ("sparsify",),
    "loops": ("lower-iteration",),
}
