"""Libraries on one thread: what is measured is the CPU time of the calling one."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

ONE_THREAD = {
    name: "1"
    for name in (
        "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    )
}  # fmt: skip


def one_thread(module: str, arguments: Sequence[str]) -> None:
    """Start this process again if libraries might use several threads: they read these variables when they load."""
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
        os.environ.update(ONE_THREAD)
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(sys.executable, [sys.executable, "-m", module, *arguments])
