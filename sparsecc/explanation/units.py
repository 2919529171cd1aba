"""Times, sizes and ratios for a reader."""

from __future__ import annotations


def seconds(value: float) -> str:
    """``12.1 us``."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(value) >= 0.9995 * scale:
            return f"{digits(value / scale)} {unit}"
    return f"{digits(value / 1e-9)} ns" if value else "0"


def size(value: float) -> str:
    """Bytes: ``117 MB``."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= 0.9995 * scale:
            return f"{digits(value / scale)} {unit}"
    return f"{value:.0f} B"


def count(value: float) -> str:
    """``29.4 M``."""
    for unit, scale in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= 10 * scale or (unit != "k" and value >= scale):
            return f"{digits(value / scale)} {unit}"
    return f"{value:.0f}"


def times(value: float) -> str:
    """A ratio: ``3.1x``."""
    return f"{value:.2f}x" if value < 2 else f"{digits(value, 2)}x"


def share(value: float) -> str:
    """``4.2 %``; never 100 % of what is not whole."""
    if 0.995 <= value < 1:
        return "over 99 %"
    return f"{digits(100 * value, 2)} %"


def digits(value: float, wanted: int = 3) -> str:
    """A number with so many digits at most, never in powers of ten."""
    text = f"{value:.{wanted}g}"
    return f"{float(text):.0f}" if "e" in text else text
