"""What a kernel reads of a matrix of sparse rows beside its arrays: tables that share its entries out to programs.

Three layouts of an operand, each its arrays as they are stored and tables of int32, which depend on positions only.
Roles of tables are those of a kernel's arguments, and so are those of the numbers that count what is in them:

``CSR-segments``
    ``segments``, rows of :data:`SEGMENT` words: the row, where its part starts and ends, how many parts the row has,
    the first slot of the row, and which of its parts this is. Long rows are cut into equal parts of at most
    :data:`PART` entries; parts come by falling length. A row of several parts has a slot for each, which holds its sum
    until the last one is there. ``sweeps``, the same segments in another order: parts of like lengths come by how far
    along their row they begin, so that programs which run side by side read the same rows of X. Numbers
    ``segment_count``, ``slot_count``.
``CSR-bins``
    ``order``, the rows by falling length; ``long_segments``, the same as ``segments`` of the rows longer than the first
    of :data:`BINS`, cut at :func:`long_part`; ``groups``, rows of :data:`GROUP` words: the kind, where its things start
    and end. Kind 0 is one segment, kind b a group of rows of the b-th bin from ``order``. Segments come first, in their
    order. Numbers ``group_count``, ``long_count`` (of segments), ``long_slot_count``.
``CSR-entries``
    ``rows``, the row of each entry. Number ``entry_count``.

The facts ``longest`` and ``mean`` say how long rows are.
"""

from __future__ import annotations

SEGMENTS, BINNED, ENTRIES = "CSR-segments", "CSR-bins", "CSR-entries"
LAYOUTS = (SEGMENTS, BINNED, ENTRIES)
COUNTS = {
    SEGMENTS: "segment_count",
    BINNED: "group_count",
    ENTRIES: "entry_count",
}
"""By layout: the number that only it has."""
SEGMENT, GROUP = 6, 3
"""Words of a segment and of a group."""
PART = 512
LONG_PARTS, PROGRAMS = (1024, 4096), 4096
"""Least and most entries of a part in ``CSR-bins``, and programs that fill a device."""
ROOM = 1024
"""So far past the last entry steps reach, under a mask: positions there have to be numbers of 32 bits too."""
PLACES = 1024
"""So finely ``sweeps`` tell how far along a row a part begins."""
BINS = ((128, 4, 32), (32, 8, 16), (4, 64, 2))
"""Bins: entries of their longest row, rows of a group, lanes of a row."""


def long_part(entries: int, mean: int) -> int:
    """Entries of the longest part in ``CSR-bins``, a power of two: what parts leave to be added up costs, so no more of
    them than fill a device, and none of rows that are like the mean."""
    least, most = LONG_PARTS
    wanted = max(1 << (entries // PROGRAMS).bit_length() >> 1, 1 << max(0, mean - 1).bit_length())
    return min(most, max(least, wanted))
