"""The iteration dialect: cursors, co-iteration with its lattice points, workspaces, insertion."""

from sparsecc.dialects.iteration.ops import (
    CursorType,
    InsertOp,
    IterateOp,
    Iteration,
    LaunchOp,
    LibraryCallOp,
    LocateOp,
    NonemptyOp,
    PresentOp,
    RootOp,
    ValueOp,
    WorkspaceOp,
    YieldOp,
    cursor,
)

__all__ = [
    "CursorType", "InsertOp", "IterateOp", "Iteration", "LaunchOp", "LibraryCallOp", "LocateOp",
    "NonemptyOp", "PresentOp", "RootOp", "ValueOp", "WorkspaceOp", "YieldOp", "cursor",
]  # fmt: skip
