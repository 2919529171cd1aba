"""What tests of the runtime share."""

from __future__ import annotations

import pytest

from tests.unit.runtime.gpu_doubles import Library, Machine


@pytest.fixture
def machine() -> Machine:
    return Machine(Library())
