"""Workers that the tests of a session share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gpu.workers import Submit, workers


@pytest.fixture(scope="session")
def submit() -> Iterator[Submit]:
    """Run jobs in processes that share the GPU."""
    with workers() as found:
        yield found
