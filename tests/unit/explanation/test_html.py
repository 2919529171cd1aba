"""One HTML file that needs nothing else, in which user text can do nothing."""

from __future__ import annotations

import struct
import zlib
from base64 import b64decode
from html.parser import HTMLParser

import numpy as np
import pytest

import sparsecc as sc
from sparsecc.explanation.html import page
from sparsecc.explanation.report import explain
from sparsecc.explanation.roofline import operations, roofline
from sparsecc.explanation.spy import SIDE, counts, spy
from sparsecc.explanation.text import plan_name
from tests.unit.explanation.decisions import grouped, linear, matrix, renamed, vector, weight

HOSTILE = "<script>alert('A')</script>"
TEXT = "y[i] = \"><img src=x onerror='alert(1)'>[i,j] * x[j] </title></style><b>"
VOID = {"meta", "img"}


class Tags(HTMLParser):
    """The tags of a page, checked to be closed in order, and the addresses that it names."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.attributes: set[str] = set()
        self.sources: list[str] = []
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.sources += [v or "" for name, v in attrs if name in ("src", "href", "srcset", "data")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(text: str) -> Tags:
    tags = Tags()
    tags.feed(text)
    tags.close()
    assert tags.open == []
    return tags


def test_a_page_stands_alone() -> None:
    report = explain(linear(grouped()))
    text = page(report, {"W": grouped()})
    tags = read(text)
    assert "svg" in tags.seen and "script" not in tags.seen and "link" not in tags.seen
    assert tags.sources and all(source.startswith("data:image/png") for source in tags.sources)
    assert "default-src 'none'" in text and "prefers-color-scheme: dark" in text
    words = " ".join(tags.texts)
    for row in report.plans:
        assert plan_name(row.candidate) in words and row.reason in words
    for offer in report.offers:
        assert offer.change in words


def test_user_text_is_escaped() -> None:
    decision = renamed(vector(), HOSTILE, TEXT)
    tags = read(page(explain(decision, notes=[HOSTILE]), {HOSTILE: matrix()}))
    assert "script" not in tags.seen
    assert not any(name.startswith("on") for name in tags.attributes)
    assert all(source.startswith("data:image/png;base64,") for source in tags.sources)
    words = "".join(tags.texts)
    assert HOSTILE in words and TEXT.strip() in words


def test_without_tensors_there_are_no_pictures() -> None:
    assert "<img" not in page(explain(linear()))


# -- pictures --------------------------------------------------------------------------------------


def pixels(uri: str) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """A PNG of four bytes a pixel and no filters, read back."""
    data = b64decode(uri.removeprefix("data:image/png;base64,"))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, dict[bytes, bytes]()
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        (check,) = struct.unpack(">I", data[at + 8 + length : at + 12 + length])
        assert check == zlib.crc32(kind + body)
        chunks[kind] = body
        at += 12 + length
    wide, high, depth, colour = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, colour) == (8, 6)
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(high, 1 + 4 * wide)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(high, wide, 4)


@pytest.mark.parametrize("format", ["dense", "CSR", "COO", "CSC"])
@pytest.mark.parametrize("shape", [(3, 5), (300, 70), (129, 500), (1, 1000)])
def test_counts_are_of_all_entries(shape: tuple[int, int], format: str) -> None:
    rng = np.random.default_rng(1)
    array = np.where(rng.random(shape) < 0.2, 1.0, 0)
    array[0, 0] = 1
    tensor = sc.asarray(array).to(format)
    found = counts(tensor)
    scale = -(-max(shape) // SIDE)
    wanted = np.zeros_like(found)
    for row, column in np.argwhere(array):
        wanted[row // scale, column // scale] += 1
    assert (found == wanted).all()
    uri = spy(tensor)
    assert uri is not None
    assert ((pixels(uri)[:, :, 3] > 0) == (wanted > 0)).all()


def test_what_has_no_picture() -> None:
    assert spy(sc.asarray(np.zeros((4, 4)))) is None
    assert spy(sc.asarray(np.ones(4))) is None
    assert spy(sc.asarray(np.ones((0, 4)))) is None


# -- the roofline ----------------------------------------------------------------------------------


def test_points_are_below_their_ceilings() -> None:
    report = explain(linear(weight(0.5)))
    found = roofline(report.problem, [r.prediction for r in report.plans], report.calibration)
    assert found is not None and len(found.points) == len(report.plans)
    entries = weight(0.5).statistics().nnz
    assert operations(report.problem) == 2 * 16 * entries
    roof = max(rate for _, rate in found.roofs)
    slope = max(rate for _, rate in found.slopes)
    for point, row in zip(found.points, report.plans, strict=True):
        assert point.rate == pytest.approx(2 * 16 * entries / row.seconds)
        assert point.rate <= roof and point.rate <= point.intensity * slope * 1.001


def test_no_roofline_of_what_is_no_product() -> None:
    from sparsecc import api

    found = api.decide("y[i] = A[i,j] + x[i]", A=matrix(), x=sc.Spec((None,)), formats={"A": "*"})
    assert found is not None
    report = explain(found)
    assert operations(report.problem) is None
    assert "Roofline" not in page(report)
