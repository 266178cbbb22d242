"""The faults: what may go wrong, one function each. See docs/simulation.md for how to add one."""

from tests.simulation.faults import (
    admission,
    cluster,
    definitions,
    gaps,
    machines,
    meanwhile,
    moments,
    network,
    policy,
    reads,
    requests,
    watches,
)
from tests.simulation.faults.kinds import Judging, Kind, Rule

_MODULES = (
    requests,
    watches,
    gaps,
    network,
    machines,
    moments,
    meanwhile,
    reads,
    cluster,
    definitions,
    policy,
    admission,
)

FAULTS: dict[str, Kind] = {kind.name: kind for module in _MODULES for kind in module.KINDS}
"""All kinds of faults by name."""

__all__ = ["FAULTS", "Judging", "Kind", "Rule"]
