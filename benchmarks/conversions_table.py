"""The lines that ``conversions.py`` prints, as a table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from timing import Row, Table

SCRIPT = Path(__file__).with_name("conversions.py")


def conversions(quick: bool) -> Table:
    """Conversions between formats beside SciPy's, in a process of their own (wall ms)."""
    table = Table("conversions", "Conversions (wall ms, the least of three)", "ours / SciPy")
    if not SCRIPT.exists():
        return table
    arguments = ["--size", "1024"] if quick else []
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments], cwd=SCRIPT.parent.parent, capture_output=True,
        text=True, check=True, env=None,
    )  # fmt: skip
    what = ""
    for line in done.stdout.splitlines():
        words = line.split()
        if line and not line.startswith(" "):
            what = line.partition(": ")[0]
        elif len(words) == 5 and words[0] != "from":
            source, target, ours, theirs, _ = words
            times = {"ours": float(ours), "SciPy": float(theirs)}
            ratio = times["ours"] / max(times["SciPy"], 0.05)
            bar = 1.2 if {source, target} <= {"CSR", "CSC", "COO"} else None
            table.add(Row(f"{what}: {source} to {target}", times, ratio, bar))
        elif len(words) == 3 and words[0] != "from":
            target, there, back = words
            times = {"ours": float(there)}
            table.add(Row(f"{what}: dense to {target}", times, float(there) / 1e3, 1.0, note="s"))
            times = {"ours": float(back)}
            table.add(Row(f"{what}: {target} to dense", times, float(back) / 1e3, 1.0, note="s"))
    return table
