"""A plugin of somebody else that raises, as a fault of cycles."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from volcano_py.conf.loader import parse_conf
from volcano_py.framework.contract.extension_points import JobOrder, NodeOrder, Predicate
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.plugins import PLUGINS
from volcano_py.scheduler import Policy, resolve

_METHODS: Final[dict[str, tuple[str, tuple[type, ...]]]] = {
    "open": ("on_session_open", ()),
    "predicate": ("predicate", (Predicate,)),
    "score": ("node_order", (NodeOrder,)),
    "order": ("job_order", (JobOrder,)),
}
_CONF: Final = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: raising\n'


class Raising:
    """Adds the plugin to policies while it raises."""

    def __init__(self) -> None:
        self.where = ""
        """Where it raises now: open, predicate, score or order; empty for nowhere."""
        self.raised: Callable[[], None] = lambda: None
        """Told each time."""
        self._tiers: dict[str, tuple[Any, ...]] = {}

    def within(self, policy: Policy) -> Policy:
        """Return what a cycle runs in place of a policy."""
        if not self.where:
            return policy
        tiers = self._tiers.get(self.where)
        if tiers is None:
            tiers = self._tiers[self.where] = self._resolved(*_METHODS[self.where])
        return replace(policy, tiers=(*policy.tiers, *tiers))

    def _resolved(self, method: str, points: tuple[type, ...]) -> tuple[Any, ...]:
        def fail(*_: Any) -> Any:
            self.raised()
            raise RuntimeError("this plugin raises")

        kind = type("RaisingPlugin", (Plugin, *points), {"name": "raising", "reasons": (), method: fail})
        return resolve(parse_conf(_CONF, "raising.conf"), {**PLUGINS, "raising": kind}).tiers
