"""What plain ``xdsl-opt`` finds of ours, by the entry point ``xdsl.universe``."""

from collections.abc import Callable

from xdsl.ir import Dialect
from xdsl.universe import Universe

from sparsecc.dialects.registry import DIALECTS, OWN, load


def _factory(spec: str) -> Callable[[], Dialect]:
    return lambda: load(spec)


SPARSECC = Universe(all_dialects={name: _factory(DIALECTS[name]) for name in OWN})
"""Our dialects only: a name that xDSL has too would be an error there."""
