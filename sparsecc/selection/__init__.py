"""Choosing formats: problems, the plans that are legal for them, what a plan costs, and strategies that rank plans.

Nothing here knows the IR or runs anything: ``passes.selection`` reads problems off a module and writes the choice
back, the runtime gives a way to measure where there is one."""
