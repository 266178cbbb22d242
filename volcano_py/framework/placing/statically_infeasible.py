"""Nodes where tasks can never go in a session, whatever is placed or evicted."""

from dataclasses import dataclass

from volcano_py.model.arrays import Bools


@dataclass(frozen=True, eq=False, slots=True)
class StaticallyInfeasible:
    """Where shapes of one static part can never go in a session: one object for all of them, equal to no other."""

    nodes: Bools  # (n_nodes,), not to be changed
