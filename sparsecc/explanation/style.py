"""The looks of a page: light or dark as the reader has it, one colour a term."""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --ink: #1c2128; --page: #fff; --quiet: #5b6570; --rule: #d8dde3; --soft: #f3f5f8;
  --bytes: #2b6cc4; --macs: #2f8f5b; --issue: #c9772c; --launch: #8a63b5; --conversion: #c2475a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ee; --page: #14181d; --quiet: #9aa5b1; --rule: #343c46;
  --soft: #1d232a; --bytes: #5b97e8; --macs: #55b883; --issue: #e39a55; --launch: #ad8ad6; --conversion: #e0707f; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 76rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; } 
pre { font-family: ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere;
  background: var(--soft); padding: .6rem .8rem; border-radius: 6px; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid var(--rule); text-align: right; vertical-align: top;
  white-space: nowrap; }
th:first-child, td:first-child, .words { text-align: left; }
.words { white-space: normal; min-width: 18rem; } tr.winner td { font-weight: 600; background: var(--soft); }
svg { font: 12px system-ui, sans-serif; max-width: 100%; height: auto; display: block; } svg text { fill: var(--ink); }
svg .quiet { fill: var(--quiet); } .quiet { color: var(--quiet); } .grid { stroke: var(--rule); }
.ceiling { stroke: var(--quiet); stroke-width: 1.5; } .point { fill: var(--bytes); }
.winner { fill: var(--conversion); }
.bytes { fill: var(--bytes); background: var(--bytes); } .macs { fill: var(--macs); background: var(--macs); }
.issue { fill: var(--issue); background: var(--issue); } .launch { fill: var(--launch); background: var(--launch); }
.conversion { fill: var(--conversion); background: var(--conversion); }
.key span { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin: 0 .3em 0 1em; }
.pair { display: flex; flex-wrap: wrap; gap: 1.5rem; align-items: flex-start; }
.spy { image-rendering: pixelated; width: 256px; border: 1px solid var(--rule); } ul { padding-left: 1.2rem; }
"""
