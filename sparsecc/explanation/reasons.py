"""Why a plan lost to another: the term in which it takes longer, in words, with the numbers of both."""

from __future__ import annotations

from math import ceil

from sparsecc.explanation.prediction import Prediction
from sparsecc.explanation.units import count, seconds, size, times
from sparsecc.selection.problem import Problem

ALIKE = 1.1
"""Amounts that differ by less are the same to a reader."""
MOSTLY = 1.5
"""An amount is the reason where times differ by at most so much more than amounts."""


def reason(problem: Problem, winner: Prediction, loser: Prediction) -> str:
    """Why ``loser`` takes longer than ``winner``; where it does not, that the model thinks so."""
    if loser.seconds < winner.seconds:
        ratio = winner.seconds / loser.seconds if loser.seconds else float("inf")
        return f"by the model it is {times(ratio)} as fast; the strategy chose otherwise"
    if loser.seconds == winner.seconds:
        return "predicted to take as long"
    more = {
        "conversion": loser.conversion - winner.conversion,
        "launch": loser.launch - winner.launch,
        "kernel": loser.kernel - winner.kernel,
    }
    worst = max(more, key=lambda part: more[part])
    if worst == "conversion":
        return _conversion(problem, winner, loser)
    if worst == "launch":
        return f"starting it takes {seconds(loser.launch)}, {seconds(more['launch'])} more"
    return _kernel(winner, loser)


def _conversion(problem: Problem, winner: Prediction, loser: Prediction) -> str:
    calls = problem.calls or 1.0
    once = loser.conversion * calls
    text = f"converting takes {seconds(once)} once"
    after = calls_to_pay_back(winner, loser, calls)
    if after is None:
        return f"{text}, and a call of it is no faster"
    return f"{text}, which {count(calls)} calls do not pay back: {count(after)} would"


def calls_to_pay_back(winner: Prediction, loser: Prediction, calls: float) -> int | None:
    """From how many calls on a plan that runs faster has made up for its conversion; None: it does not run faster."""
    gain = winner.running - loser.running
    if gain <= 0:
        return None
    once = (loser.conversion - winner.conversion) * calls
    return max(1, ceil(once / gain))


def _kernel(winner: Prediction, loser: Prediction) -> str:
    bound = loser.bound
    if bound == "bytes":
        return _bytes(winner, loser)
    if bound == "macs":
        return _macs(winner, loser)
    return _instructions(winner, loser)


def _bytes(winner: Prediction, loser: Prediction) -> str:
    ours, theirs = winner.moved, loser.moved
    taken, known = loser.terms["bytes"], winner.terms["bytes"]
    if _by_amount(ours, theirs, known, taken):
        return f"reads {times(theirs / ours)} the bytes: {size(theirs)}, not {size(ours)}"
    if ours and theirs and theirs / taken * ALIKE < ours / known:
        return f"its kernels move {size(theirs / taken)}/s, the winner's {size(ours / known)}/s"
    return f"moving its bytes takes {seconds(taken)}, the winner's kernel {seconds(winner.kernel)}"


def _macs(winner: Prediction, loser: Prediction) -> str:
    ours, theirs = winner.amount("macs", "mac"), loser.amount("macs", "mac")
    taken = loser.terms["macs"]
    if _by_amount(ours, theirs, winner.terms["macs"], taken):
        return f"does {times(theirs / ours)} the multiplications, which take {seconds(taken)}"
    return (
        f"its multiplications take {seconds(taken)}, the winner's kernel {seconds(winner.kernel)}"
    )


def _by_amount(ours: float, theirs: float, known: float, taken: float) -> bool:
    """Whether there is more of something, and that is most of why it takes longer."""
    if not ours or not known or theirs / ours < ALIKE:
        return False
    return taken / known < MOSTLY * theirs / ours


def _instructions(winner: Prediction, loser: Prediction) -> str:
    """The work that takes most longer, or longest where the winner's instructions are hidden by other terms."""
    beside = winner.bound == "issue"
    spent = {p.unit: p.seconds for p in winner.parts if p.term == "issue"} if beside else {}
    found = [p for p in loser.parts if p.term == "issue"]
    part = max(found, key=lambda p: p.seconds - spent.get(p.unit, 0.0), default=None)
    if part is None:
        return f"its instructions take {seconds(loser.terms['issue'])}, the winner's kernel {seconds(winner.kernel)}"
    amount = size(part.amount) if part.bytes else count(part.amount)
    what = part.words.removeprefix("bytes ") if part.bytes else part.words
    text = f"{amount} {what} take {seconds(part.seconds)}"
    if part.unit in spent:
        return f"{text}, the winner's {seconds(spent[part.unit])}"
    return f"{text}, the winner's whole kernel {seconds(winner.kernel)}"
