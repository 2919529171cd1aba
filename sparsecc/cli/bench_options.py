"""The options of ``sparsecc bench``."""

from __future__ import annotations

import argparse

from sparsecc.cli.counts import count


def bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", choices=("gpu",), help="gpu: the kernels beside the libraries")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="WORDS",
        help="cells with these words in their names, as in '2:4 f16' (see --list), or 'latency'",
    )
    parser.add_argument("--list", action="store_true", help="print the names of the cells")
    parser.add_argument("--quick", action="store_true", help="a tenth of the cells, fewer rounds")
    parser.add_argument("--json", metavar="FILE", help="write machine, versions and times there")
    parser.add_argument(
        "--resume", action="store_true", help="leave out the cells that the --json file has"
    )
    parser.add_argument(
        "--skip",
        action="append",
        default=[],
        metavar="'CELL | CANDIDATE'",
        help="a candidate that is not to run in a cell: the device was lost with it",
    )
    parser.add_argument(
        "--from",
        dest="earlier",
        action="append",
        default=[],
        metavar="FILE",
        help="measure nothing: put earlier --json files together",
    )
    parser.add_argument(
        "--docs",
        nargs="?",
        const="docs/benchmarks/gpu.md",
        metavar="PAGE",
        help="write tables and plots into a page (default: docs/benchmarks/gpu.md)",
    )
    parser.add_argument("--target", help="compile for this target (default: the GPU's own)")
    parser.add_argument(
        "--workers", type=count, default=0, metavar="N", help="processes that compile"
    )
