"""Sabotages of what talks to the API server: reflector, retry queue, requests, leader election."""

from typing import Final

from tests.simulation.sabotages.sabotage import Sabotage

_REFLECTOR: Final = "volcano_py/kube/reflector.py"
_DELIVERY: Final = "volcano_py/kube/delivery.py"
_RETRIES: Final = "volcano_py/kube/retry_queue.py"
_LEADER: Final = "volcano_py/kube/leader.py"

SABOTAGES: Final = (
    Sabotage(
        "stalled-watch-unnoticed",
        "volcano_py/kube/transport.py",
        "ClientTimeout(total=lasts_s + STREAM_GRACE_S, sock_connect=open_s, sock_read=stall_s)",
        "ClientTimeout(total=None, sock_connect=open_s)",
        "A watch that a balancer has forgotten stays open for ever, and the scheduler decides on an old state.",
        ("watches are up to date", "cache is true"),
        ("watch stalls*|watches of a process stall*",),
    ),
    Sabotage(
        "list-keeps-what-is-missing",
        _DELIVERY,
        "        for key in [key for key in self._versions if key not in listed]:",
        "        for key in [key for key in self._versions if key not in listed and key in self._quarantined]:",
        "A pod that was deleted while the watch was broken holds its room for ever.",
        ("cache is true", "nothing left to decide"),
        ("gap in watches*", "pod *|node vanishes*|kill*"),
    ),
    Sabotage(
        "deletion-by-name",
        _DELIVERY,
        "        if had is not None and had[0] == uid:\n            self._drop(key, last",
        "        if had is not None:\n            self._drop(key, last",
        "A repeated deletion event hides the pod that has the name now.",
        ("cache is true", "nothing left to decide"),
        ("events repeated pods|events repeated [*]", "pod *|node vanishes*|work vcjob"),
    ),
    Sabotage(
        "replaced-object-as-changed",
        _DELIVERY,
        "        elif had[0] != uid:\n            self._drop(key, None, received_at, listed=listed)\n"
        "            change = EventType.ADDED",
        "        elif had[0] != uid:\n            change = EventType.MODIFIED",
        "A pod that was replaced while the watch was broken stays in the cache beside its successor.",
        ("cache is true",),
        ("gap in watches*", "pod replaced*"),
    ),
    Sabotage(
        "bookmark-ignored",
        _REFLECTOR,
        "            version = item.resource_version\n            if item.initial_events_end",
        '            version = ""\n            if item.initial_events_end',
        "After every compaction all quiet resources are listed again, in all clusters at once.",
        ("no needless list",),
        ("compaction*", "watch cut*|garbled*|restart of*|partition*|isolation*|half-open*|pause*"),
    ),
    Sabotage(
        "one-404-empties-the-cache",
        _REFLECTOR,
        "            return not await self._client.serves(self._resource, timeout_s=_DISCOVERY_S)",
        "            return True",
        "One stray 404 deletes all PodGroups and queues from the cache, and gangs are scheduled without their minimum.",
        ("nothing is forgotten",),
        ("list refused with 404 list podgroups*|list refused with 404 list [*]|404 list [*]",),
    ),
    Sabotage(
        "no-pause-between-attempts",
        _RETRIES,
        "        failures.failed_at, failures.until = now, now + backoff_s",
        "        failures.failed_at, failures.until = now, now",
        "While the API server is overloaded, every refused write comes back at once.",
        ("refusals are heeded",),
        (
            "503 create pods/binding|500 create pods/binding"
            "|429 without* create pods/binding|503 create pods|500 create pods",
        ),
    ),
    Sabotage(
        "retry-after-ignored",
        _RETRIES,
        "        backoff_s = failures.backoff.next(retry_after_s)",
        "        backoff_s = failures.backoff.next()",
        "An API server that asks for three seconds of silence gets five requests meanwhile.",
        ("refusals are heeded",),
        ("429 create pods/binding|429 delete pods|429 create pods",),
    ),
    Sabotage(
        "retry-forgotten",
        _RETRIES,
        "        self.plan(key)\n        return failures.until - now",
        "        return failures.until - now",
        "Work that failed once is never tried again.",
        ("cache is true", "nothing left to decide"),
        ("503 create pods/binding|500 create pods/binding|429* create pods/binding|dropped* create pods/binding",),
    ),
    Sabotage(
        "lease-taken-too-early",
        _LEADER,
        "        return self._clock.monotonic() < self._seen_at + self._seen.duration_s\n",
        "        return self._clock.monotonic() < self._seen_at + self._seen.duration_s / 2\n",
        "Two schedulers bind at the same time whenever the leader is slow for eight seconds.",
        ("one leader",),
        ("pause scheduler*|isolation scheduler*|late [*] leases*|late [*] [*]|dropped before* [*] leases*",),
    ),
    Sabotage(
        "lease-counted-from-the-answer",
        _LEADER,
        "        self._renewed_at = sent_at",
        "        self._renewed_at = self._clock.monotonic()",
        "A leader that was suspended writes for some seconds beside its successor.",
        ("one leader",),
        (
            "during a decision scheduler paused|pause scheduler*|pause at a write*",
            "late [*] leases*|slow network*|late [*] [*]|answer after* [*] leases*",
        ),
    ),
    Sabotage(
        "lease-not-looked-at-when-sending",
        "volcano_py/kube/connections.py",
        "            if obstacle is not None and (why := obstacle()):",
        '            if obstacle is not None and (why := obstacle() and ""):',
        "A process that was suspended sends what it had decided beside the next leader.",
        ("one leader",),
        ("during a decision scheduler paused",),
    ),
    Sabotage(
        "lost-lease-taken-back",
        _LEADER,
        "        if renewing:\n            return _Outcome.TAKEN",
        "        if renewing and self._valid():\n            return _Outcome.TAKEN",
        "A leader goes on with its old decisions although another one has led meanwhile.",
        ("who lost the lease ends",),
        ("pause*scheduler*|pause at a write*|during a decision scheduler paused",),
    ),
)
