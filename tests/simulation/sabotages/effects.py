"""Sabotages of what carries out decisions: binder, evictor, writers of statuses and conditions."""

from typing import Final

from tests.simulation.sabotages.sabotage import Sabotage

_BINDER: Final = "volcano_py/effects/binder.py"
_BIND_TROUBLE: Final = "* create pods/binding|late * *|very late * *|dropped* * *"

SABOTAGES: Final = (
    Sabotage(
        "bind-without-uid",
        "volcano_py/effects/binding.py",
        "_Binding(_Metadata(namespace, name, uid), _Target(bind.node))",
        '_Binding(_Metadata(namespace, name, ""), _Target(bind.node))',
        "A pod that was deleted and created again under its name runs on a node that was chosen for its predecessor.",
        ("one binding per pod",),
        ("during a decision bind late, pod replaced", "work single|work gang"),
    ),
    Sabotage(
        "unclear-bind-released",
        _BINDER,
        "            order.unclear = error.maybe_applied\n            self._postpone(order, error)",
        "            if error.maybe_applied:\n"
        "                self._failed(order, str(error))\n"
        "                return\n"
        "            self._postpone(order, error)",
        "After a lost answer the room of a bound pod is given away a second time.",
        ("no node above its allocatable", "a bound pod is scheduled"),
        ("during a decision answers lost*|answer after the watch create pods/binding|late create pods/binding",),
    ),
    Sabotage(
        "objection-ignored",
        _BINDER,
        "        if why := self._objection(bind):  # the cluster may have changed while it waited",
        '        if why := self._objection(bind) and "":  # the cluster may have changed while it waited',
        "A bind that waited for its next attempt puts its pod on a node that is gone or cordoned.",
        ("binds go to open nodes",),
        ("during a decision binds refused, node gone",),
    ),
    Sabotage(
        "limit-falls-to-zero",
        "volcano_py/writing/concurrency_limit.py",
        "            self._limit = max(self._limit * factor, self._lowest)",
        "            self._limit = self._limit * factor",
        "After some answers 429 the scheduler never sends a bind again.",
        ("nothing left to decide", "cache is true", "rest"),
        ("429* create pods/binding|503 create pods/binding|500 create pods/binding|dropped* create pods/binding",),
    ),
    Sabotage(
        "status-remembered-before-written",
        "volcano_py/effects/podgroup_status.py",
        '            body = {"metadata": {"resourceVersion": version}, "status": patch}',
        "            self._dedup.remember(key, key, _content(wanted), found, shown, version)\n"
        '            body = {"metadata": {"resourceVersion": version}, "status": patch}',
        "The status of a PodGroup whose write was refused stays old for ever.",
        ("nothing left to decide",),
        ("* [*] podgroups*|403 [*] [*]|422 [*] [*]",),
    ),
    Sabotage(
        "queue-status-remembered-before-written",
        "volcano_py/effects/queue_status.py",
        "        gone: dict[str, str | None] = dict.fromkeys((*known, *shown))",
        '        self._written[name] = _Written(allocated, self._version_of(name) + "0")\n'
        "        gone: dict[str, str | None] = dict.fromkeys((*known, *shown))",
        "status.allocated of a queue stays wrong after one lost write.",
        ("statuses are true",),
        ("* [*] queues*",),
    ),
    Sabotage(
        "condition-without-version",
        "volcano_py/effects/pod_conditions.py",
        '            "metadata": {"uid": condition.task.uid, "resourceVersion": version},',
        '            "metadata": {"uid": condition.task.uid},',
        "A pod that runs says PodScheduled=False.",
        ("a bound pod is scheduled",),
        ("late patch pods/status|late [*] [*]|answer after the watch patch pods/status|slow*", "work gang"),
    ),
    Sabotage(
        "unclear-eviction-released",
        "volcano_py/effects/evictor.py",
        "            order.unclear = order.unclear or (deleting and error.maybe_applied)\n            raise",
        "            if error.maybe_applied:\n"
        "                self._failed(order, str(error))\n"
        "                return\n"
        "            raise",
        "After a lost answer a victim counts as running, and another pod is evicted in its place.",
        ("evictions help",),
        (
            "conf *preempt*",
            "late delete pods|dropped after* delete pods|answer after* delete pods|late [*] [*]|dropped after* [*] [*]",
        ),
    ),
    Sabotage(
        "write-queue-gives-up-at-once",
        "volcano_py/writing/write_queue.py",
        "_AGAIN = (errors.TooManyRequests, errors.ServerError, errors.Timeout, errors.ConnectionFailed, ",
        "_AGAIN = (",
        "One 503 loses the status of a PodGroup, a queue or a pod.",
        ("nothing left to decide", "statuses are true"),
        (
            "503 [*] podgroups*|500 [*] podgroups*"
            "|503 [*] queues*|dropped before* [*] queues*|dropped before* [*] podgroups*",
        ),
    ),
)
