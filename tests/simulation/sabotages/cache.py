"""Sabotages of the ledger and the cache: what is assumed, and what the watch says."""

from typing import Final

from tests.simulation.sabotages.sabotage import Sabotage

_BINDS: Final = "volcano_py/cache/binds.py"
_POD_EVENTS: Final = "volcano_py/cache/pod_events.py"
_LATE_BINDS: Final = (
    "late create pods/binding|very late create pods/binding|429* create pods/binding|503 create pods/binding"
    "|dropped* create pods/binding"
)

SABOTAGES: Final = (
    Sabotage(
        "entry-forgotten-at-timeout",
        "volcano_py/daemon/recheck.py",
        "            kind.assumed.resolve(task, pod)",
        '            kind.assumed.failed(task, "it is overdue")',
        "While the watch is silent, the room of pods that were bound is given away a second time.",
        ("no node above its allocatable",),
        ("watch stalls pods|watches of a process stall scheduler*|older state watches",),
    ),
    Sabotage(
        "answer-ends-entry",
        "volcano_py/cache/assumptions.py",
        "        self.ledger.acknowledged(task.uid, self._clock.monotonic())",
        "        self.ledger.forget(task.uid)",
        "A bound pod whose watch is late counts as waiting, and its room is given away.",
        ("the cache is what was shown",),
        ("older state watches|during a decision answers lost*|watch stalls pods",),
    ),
    Sabotage(
        "group-change-ignored",
        _BINDS,
        '        if revision > decided_at:\n            return {bind.task.uid: f"PodGroup {job} was changed',
        '        if revision < 0:\n            return {bind.task.uid: f"PodGroup {job} was changed',
        "A gang whose minimum was raised during the decision starts with too few pods.",
        ("no stale bind",),
        ("during a decision minimum raised", "work gang"),
    ),
    Sabotage(
        "node-change-ignored",
        _BINDS,
        "        if self._state.node_revision(bind.node) > decided_at:\n",
        "        if self._state.node_revision(bind.node) < 0:\n",
        "Pods are put on a node that was cordoned or tainted while the scheduler decided.",
        ("no stale bind",),
        ("during a decision node cordoned",),
    ),
    Sabotage(
        "room-not-checked-again",
        _BINDS,
        "        if ((after < before) & (after <= -EPSILON)).any():",
        "        if ((after < before) & (after <= -EPSILON)).any() and False:",
        "Room that another scheduler took during the decision is given away a second time.",
        ("no stale bind",),
        ("during a decision room taken",),
    ),
    Sabotage(
        "deleted-pod-stays-assumed",
        _POD_EVENTS,
        "        self._binds.forget(uid)\n        self._drop(uid, self._store.task(uid))",
        "        if self._binds.get(uid) is not None:\n"
        "            return\n"
        "        self._drop(uid, self._store.task(uid))",
        "A pod that was deleted while it was being bound holds its room until the scheduler is restarted.",
        ("cache is true",),
        ("during a decision binds refused, pod gone|gap in watches*", "* create pods/binding|during a decision*"),
    ),
    Sabotage(
        "no-back-off-after-failed-binds",
        _BINDS,
        "        if entry is not None and entry.job is not None:\n",
        "        if entry is not None and entry.job is None:\n",
        "A bind that a policy refuses is sent again every second, for each pod.",
        ("refusals are heeded",),
        ("bind refused for chosen pods*|403 create pods/binding|422 create pods/binding",),
    ),
    Sabotage(
        "older-state-of-a-pod-taken",
        _POD_EVENTS,
        "        if place is not None and _is_older(pod, place):",
        "        if place is not None and not uid and _is_older(pod, place):",
        "A pod that runs counts as waiting after a list from a server that lags.",
        ("no node above its allocatable", "a bound pod is scheduled"),
        ("older state lists",),
    ),
    Sabotage(
        "foreign-pods-not-counted",
        _POD_EVENTS,
        "            if not node and not (nominated_node(pod) and task_status(pod) is TaskStatus.PENDING):",
        "            if pod.metadata.uid:",
        "Pods of other schedulers use no room, so that nodes are overfilled.",
        ("no node above its allocatable",),
        ("foreign*",),
    ),
    Sabotage(
        "room-of-terminating-pods-given-away",
        _POD_EVENTS,
        '        node = "" if is_terminal(pod) else pod.spec.node_name',
        '        leaves = pod.metadata.deletion_timestamp is not None and pod.status.phase == "Running"\n'
        '        node = "" if is_terminal(pod) or leaves else pod.spec.node_name',
        "A pod is bound to a node whose former pod has not ended yet, and the kubelet refuses it.",
        ("no node above its allocatable",),
        ("pod vanishes*|pod *", "work vcjob"),
    ),
    Sabotage(
        "weakened-gang-evicted-further",
        "volcano_py/cache/evictions.py",
        "        if self._state.loss_revision(job) > decided_at:",
        "        if self._state.loss_revision(job) < 0:",
        "A gang that lost a pod during the decision is evicted below its minimum for nothing.",
        ("evictions help",),
        ("conf *preempt*", "pod vanishes*|during a decision pod gone"),
    ),
    Sabotage(
        "failed-bind-keeps-its-room",
        "volcano_py/cache/pod_events.py",
        '        self._state.move_task(place, TaskStatus.PENDING, "")\n        self._state.touch_job(place.record.key)',
        "        self._state.touch_job(place.record.key)",
        "A pod whose bind was refused is never scheduled again, and its room is lost.",
        ("cache is true", "nothing left to decide"),
        ("403 create pods/binding|422 create pods/binding|404 create pods/binding|409 create pods/binding",),
    ),
)
