"""``sparsecc bench gpu``: measure the kernels beside the libraries."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparsecc.bench import cells as cell_table
from sparsecc.bench import machine, report
from sparsecc.bench.cells import Cell
from sparsecc.bench.latency import LATENCIES, measure_latencies
from sparsecc.bench.ours import Ours, compile_all
from sparsecc.bench.results import Result, Run, read_runs
from sparsecc.bench.runner import QUICK, DeviceLost, Runner, Settings
from sparsecc.bench.timing import GraphTimer
from sparsecc.bench.weights import torch_module
from sparsecc.cli.output import note, write_text

LATENCY_GROUP = "latency"


def bench(options: Namespace) -> None:
    """Run the cells that are asked for; the tables go to stdout. Raises NoGpu."""
    asked = [text for text in options.only if text != LATENCY_GROUP]
    latency = not options.only or LATENCY_GROUP in options.only
    known = cell_table.all_cells()
    chosen = cell_table.select(known, asked) if asked or not options.only else ()
    chosen = cell_table.quick(chosen) if options.quick else chosen
    if options.list:
        print("\n".join([*(cell.name for cell in chosen), *(LATENCIES if latency else ())]))
        return
    if options.earlier:
        run = read_runs([Path(name) for name in options.earlier])
    else:
        run = _measured(chosen, latency, options)
    if options.json:
        write_text(Path(options.json), json.dumps(run.to_json(), indent=1) + "\n")
    if options.docs:
        for path in report.write_page(run, Path(options.docs)):
            note(f"wrote {path}")
    print(report.markdown(run), end="")


def _measured(chosen: Sequence[Cell], latency: bool, options: Namespace) -> Run:
    target = options.target or machine.find_gpu()
    machine.find_gpu()
    torch = torch_module()
    timer = GraphTimer()
    facts: dict[str, Any] = machine.facts(timer) | {"target": target, "quick": options.quick}
    note(f"{facts['gpu']}: {facts['copy_bandwidth'] / 1e12:.2f} TB/s copied")
    workers = options.workers or os.cpu_count() or 1
    done = 0
    for cell, outcome in compile_all(chosen, target, workers) if chosen else ():
        done += 1
        if isinstance(outcome, str):
            note(f"{cell.name}: {outcome}")
        elif done % 20 == 0:
            note(f"compiled {done}")
    settings = replace(QUICK) if options.quick else Settings()

    def release() -> None:
        timer.forget()
        try:
            torch.cuda.empty_cache()
        except RuntimeError as error:  # after a capture that failed
            note(f"memory is kept: {error}")

    runner = Runner(timer, Ours(target), settings, alive=torch.cuda.synchronize, release=release)
    results: list[Result] = []
    try:
        for result in runner.run(chosen):
            results.append(result)
            note(f"{len(results)}/{len(chosen)} {_line(result)}")
            if options.json and len(results) % 20 == 0:  # what is measured outlives a crash
                partly = Run(facts, tuple(results))
                write_text(Path(options.json), json.dumps(partly.to_json(), indent=1) + "\n")
    except DeviceLost as lost:
        note(str(lost))
        latency = False
    latencies = measure_latencies(target) if latency else ()
    return Run(facts, tuple(results), tuple(latencies))


def _line(result: Result) -> str:
    times = ", ".join(f"{family} {time.us:.1f}" for family, time in result.times.items())
    failed = "; ".join(f"{name}: {why}" for name, why in result.failures.items())
    return f"{result.cell.name}: {times} us" + (f" [{failed}]" if failed else "")
