"""Requests that are lost, refused or answered late.

| fault | what it does | targets |
|---|---|---|
| dropped before it took effect | closes the connection; the server does nothing | verb and resource |
| dropped after it took effect | carries the request out, then closes the connection | verb and resource |
| late, very late | carries the request out seconds later; the client may have given up | verb and resource |
| answer after the watch | carries the request out; the watch shows it seconds before the answer comes | writes |
| 409, 429, 429 without a time, 500, 503, 504, 401, 403, 404, 422 | refuses without doing anything | verb and resource |
| bind refused for chosen pods | refuses every Binding of some pods with 422 or 403, until the fault ends | the code |
| quota exceeded | refuses new pods, as a ResourceQuota does | clients |
| refused by admission | refuses a part of the writes, as somebody else's webhook does | verb and resource |
"""

import asyncio
from typing import TYPE_CHECKING, Final

from tests.simulation.faults.kinds import Kind, Make, Refusal, replied, ruled
from tests.simulation.plan import Strike
from volcano_py.apiserver.faults import Fault

if TYPE_CHECKING:
    from tests.simulation.servers import Asked
    from tests.simulation.world import World

_WRITES: Final = (
    *("create pods/binding", "create pods/binding", "create pods/binding", "delete pods", "patch pods/status"),
    *("* podgroups.scheduling.volcano.sh*", "* queues.scheduling.volcano.sh*", "create events", "create pods"),
    *("* jobs.batch.volcano.sh*", "* commands.bus.volcano.sh", "* leases.coordination.k8s.io", "* *"),
)
_REQUESTS: Final = (*_WRITES, "get pods", "list pods", "list *")
_LASTS: Final = (2.0, 25.0)
_OFTEN: Final = (0.2, 1.0)
_QUOTA: Final = "exceeded quota: compute, requested: pods=1, used: pods=20, limited: pods=20"
_DENIED: Final = 'admission webhook "policy.example.com" denied the request: the image is not signed'


def _dropped(action: str) -> Make:
    return lambda *_: Fault(action)  # type: ignore[arg-type]


def _late(_: "World", strike: Strike, __: "Asked") -> Fault:
    return Fault("delay", delay_s=2.0 + 8.0 * strike.amount)


def _answered_late(_: "World", strike: Strike, asked: "Asked") -> Fault:
    async def wait() -> None:
        await asyncio.sleep(0.5 + 8.0 * strike.amount)

    asked.after = wait
    return Fault("delay", delay_s=0.0)


def _refused(_: "World", strike: Strike, __: "Asked") -> Fault:
    return Refusal("reply", code=int(strike.target), message="this pod may not be bound")


KINDS: Final = (
    Kind("dropped before it took effect", ruled(_dropped("drop_before")), _REQUESTS, _LASTS, _OFTEN, 3),
    Kind("dropped after it took effect", ruled(_dropped("drop_after")), _WRITES, _LASTS, _OFTEN, 5),
    Kind("late", ruled(_late), _REQUESTS, _LASTS, _OFTEN, 3),
    Kind("very late", ruled(lambda *_: Fault("delay", delay_s=45.0)), _REQUESTS, _LASTS, (0.1, 0.5), 1),
    Kind("answer after the watch", ruled(_answered_late), _WRITES, _LASTS, _OFTEN, 4),
    Kind("409", ruled(replied(409)), _REQUESTS, _LASTS, _OFTEN),
    Kind("429", ruled(replied(429, retry_after_s=3)), _REQUESTS, _LASTS, _OFTEN),
    Kind("429 without a time", ruled(replied(429)), _REQUESTS, _LASTS, _OFTEN),
    Kind("500", ruled(replied(500)), _REQUESTS, _LASTS, _OFTEN),
    Kind("503", ruled(replied(503)), _REQUESTS, _LASTS, _OFTEN),
    Kind("504", ruled(replied(504)), _REQUESTS, _LASTS, _OFTEN, 1),
    Kind("401", ruled(replied(401)), _REQUESTS, (1.0, 8.0), _OFTEN),
    Kind("403", ruled(replied(403)), _REQUESTS, _LASTS, _OFTEN),
    Kind("404", ruled(replied(404)), _REQUESTS, (1.0, 8.0), _OFTEN),
    Kind("422", ruled(replied(422)), _WRITES, _LASTS, _OFTEN, 1),
    Kind(
        "bind refused for chosen pods",
        ruled(_refused, chosen=True, verb="create", resource="pods/binding"),
        ("422", "403"),
        (10.0, 45.0),
        (0.2, 0.6),
        4,
    ),
    Kind(
        "quota exceeded",
        ruled(replied(403, _QUOTA), client="controllers-*"),
        ("create pods",),
        (3.0, 30.0),
    ),
    Kind(
        "refused by admission",
        ruled(replied(400, _DENIED), chosen=True),
        ("create pods", "create jobs.batch.volcano.sh", "* podgroups.scheduling.volcano.sh", "create *"),
        (3.0, 30.0),
        (0.3, 1.0),
    ),
)
