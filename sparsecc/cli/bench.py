"""``sparsecc bench gpu``: measure the kernels beside the libraries."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from sparsecc.bench import cells as cell_table
from sparsecc.bench import machine, report
from sparsecc.bench.cells import Cell
from sparsecc.bench.latency import LATENCIES, measure_latencies
from sparsecc.bench.ours import Ours, compile_ahead
from sparsecc.bench.results import Result, Run, read_runs
from sparsecc.bench.runner import QUICK, DeviceLost, Runner, Settings
from sparsecc.bench.timing import GraphTimer
from sparsecc.bench.weights import torch_module
from sparsecc.cli.output import note, write_text

LATENCY_GROUP = "latency"
LOSSES = 8
"""So many times a run goes on after it has lost the device."""


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
    _write(run, options)
    if options.docs:
        for path in report.write_page(run, Path(options.docs)):
            note(f"wrote {path}")
    print(report.markdown(run), end="")


def _write(run: Run, options: Namespace) -> None:
    if options.json:
        write_text(Path(options.json), json.dumps(run.to_json(), indent=1) + "\n")


def _measured(chosen: Sequence[Cell], latency: bool, options: Namespace) -> Run:
    begin = perf_counter()
    target = options.target or machine.find_gpu()
    machine.find_gpu()
    torch = torch_module()
    timer, pace = GraphTimer(), machine.Pace()
    facts: dict[str, Any] = machine.facts(pace) | {"target": target, "quick": options.quick}
    note(f"{facts['gpu']}: {facts['copy_bandwidth'] / 1e12:.2f} TB/s copied")
    run = Run(facts, ())
    if options.resume and options.json and Path(options.json).exists():
        earlier = read_runs([Path(options.json)])
        run = replace(earlier, machine=dict(earlier.machine) | facts)
    have = {result.cell for result in run.results}
    chosen = [cell for cell in chosen if cell not in have]

    def release() -> None:
        timer.forget()
        try:
            torch.cuda.empty_cache()
        except RuntimeError as error:  # after a capture that failed
            note(f"memory is kept: {error}")

    runner = Runner(
        timer, Ours(target), replace(QUICK) if options.quick else Settings(),
        alive=torch.cuda.synchronize, release=release, pace=pace, skip=frozenset(map(_skipped, options.skip)),
    )  # fmt: skip
    workers = options.workers or max(1, (os.cpu_count() or 1) - 1)
    try:
        with compile_ahead(chosen, target, workers) as made:
            start, waited = perf_counter(), 0.0

            def ready() -> Iterator[Cell]:
                nonlocal start, waited
                for cell in chosen:
                    start = perf_counter()
                    outcome = made(cell)
                    waited = perf_counter() - start
                    if isinstance(outcome, str):
                        note(f"{cell.name}: {outcome}")
                    yield cell

            for number, result in enumerate(runner.run(ready()), 1):
                run = replace(run, results=(*run.results, result))
                now = perf_counter()
                note(
                    f"{number}/{len(chosen)} {_line(result)}; {now - start:.1f} s with {waited:.1f} s for the "
                    f"compiler, {now - begin:.0f} s in all"
                )
                _write(run, options)  # what is measured outlives a crash
    except DeviceLost as lost:
        note(str(lost))
        if options.json and len(options.skip) < LOSSES:
            _go_on(options, f"{lost.facts['cell']} | {lost.facts['candidate']}")
        return run
    if latency:
        latencies = {x.name: x for x in (*run.latencies, *measure_latencies(target))}
        run = replace(run, latencies=tuple(latencies.values()))
    return run


def _skipped(text: str) -> tuple[str, str]:
    cell, _, candidate = text.partition(" | ")
    return cell, candidate


def _go_on(options: Namespace, skip: str) -> None:
    """Begin anew for the cells that are left, in a process that has a device: this one has none any more."""
    arguments = ["bench", "gpu", "--json", options.json, "--resume"]
    for name, values in (("only", options.only), ("skip", [*options.skip, skip])):
        arguments += [f"--{name}={value}" for value in values]
    arguments += ["--quick"] if options.quick else []
    for name in ("docs", "target", "workers"):
        if getattr(options, name):
            arguments.append(f"--{name}={getattr(options, name)}")
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, "-m", "sparsecc", *arguments])


def _line(result: Result) -> str:
    times = ", ".join(f"{family} {time.us:.1f}" for family, time in result.times.items())
    failed = "; ".join(f"{name}: {why}" for name, why in result.failures.items())
    return f"{result.cell.name}: {times} us" + (f" [{failed}]" if failed else "")
