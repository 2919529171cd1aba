"""Numbers in options."""

from __future__ import annotations


def count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def some_calls(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise ValueError
    return number


some_calls.__name__ = "number of calls"
positive.__name__ = "positive count"
count.__name__ = "count"  # argparse's message: invalid count value
