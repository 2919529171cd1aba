"""The benchmarks: ``make bench``, or ``python benchmarks/run.py [--quick] [--json FILE] [FILTER]``.

Times are CPU time of the calling thread, the candidates interleaved, medians of many rounds; what
counts are the ratios to the peer in the same run. Everything runs on one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def machine() -> dict[str, Any]:
    """Where and on what this ran."""
    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ] if Path("/proc/cpuinfo").exists() else []  # fmt: skip
    import llvmlite.binding as llvm

    return {
        "cpu": names[0] if names else platform.processor(),
        "llvm_cpu": llvm.get_host_cpu_name(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {p: version(p) for p in ("numpy", "scipy", "llvmlite", "xdsl", "lark")},
        "commit": commit(),
    }


def commit() -> str:
    """The commit of the checkout, with a ``+`` if files differ from it; empty outside of git."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else ""

    return git("rev-parse", "--short=10", "HEAD") + ("+" if git("status", "--porcelain") else "")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmarks that are asked for, print their tables, write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("filter", nargs="*", help="tables whose names hold one of these texts")
    parser.add_argument("--quick", action="store_true", help="small matrices, few rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write machine and tables there")
    parser.add_argument("--matrices", type=Path, metavar="FOLDER",
                        help="real .mtx files for the SpMV and SpMM tables, too")  # fmt: skip
    options = parser.parse_args(argv)
    # Before NumPy is loaded: the peers run on the calling thread too, whose time is measured.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    # The checkout that this file is in, whatever is installed.
    sys.path.insert(0, str(ROOT))
    from suite import attempt, tables

    known = tables(options.quick, options.matrices)
    wanted = [n for n in known if not options.filter or any(f in n for f in options.filter)]
    if not wanted:
        parser.error(f"no table fits; there are {', '.join(known)}")
    facts = machine()
    print(f"{facts['cpu']} ({facts['llvm_cpu']}), {facts['cores']} cores, {facts['system']}; "
          f"Python {facts['python']}, "
          + ", ".join(f"{k} {v}" for k, v in facts["versions"].items())
          + f"; commit {facts['commit']}\n")  # fmt: skip
    done: list[Any] = []
    for name in wanted:
        table = attempt(name, known[name])
        done.append(table)
        print(table.text() + "\n", flush=True)
    missed = [f"{t.name}: {r.case}" for t in done for r in t.rows if r.verdict == "MISSED"]
    print(f"{len(missed)} bars missed" + "".join(f"\n  {m}" for m in missed))
    if options.json:
        data = {"machine": facts, "quick": options.quick, "tables": [t.data() for t in done]}
        options.json.write_text(json.dumps(data, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
