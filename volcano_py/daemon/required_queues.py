"""Creates the queues that must exist if they are missing: ``root`` and the default queue."""

from collections.abc import Callable
from typing import Any, Final

import structlog

from volcano_py.api import keys
from volcano_py.kube import errors
from volcano_py.kube.backoff import Backoff
from volcano_py.kube.client import ApiClient
from volcano_py.kube.outage import Outage
from volcano_py.kube.resource import QUEUES
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

_TIMEOUT_S: Final = 10.0
_NAME: Final = "creation of queues"


async def ensure_queues(
    client: ApiClient,
    default_queue: str,
    *,
    clock: Clock,
    backoff: Backoff,
    absent_retry_s: float,
    outage: Outage | None = None,
    exists: Callable[[str], bool] = lambda _: False,
) -> None:
    """Create the queues that are missing; return when they exist or when we are not allowed to create them.

    ``exists`` says which queues the watch shows. Of these, nothing is asked: while no webhook answers, the API server
    refuses even the creation of what exists, and says only that it refuses.

    No job is placed without its queue. Therefore this is tried until the API server answers; if the CRD of queues is
    missing, at least every ``absent_retry_s`` seconds.
    """
    outage = outage or Outage(client.server, clock)
    for name, reclaimable in ((keys.ROOT_QUEUE, False), (default_queue, True)):
        while not exists(name):
            pause_s = await _create(client, name, reclaimable, backoff, absent_retry_s, outage)
            if pause_s is None:
                break
            await clock.sleep(pause_s)
        outage.answered(_NAME)


async def _create(
    client: ApiClient, name: str, reclaimable: bool, backoff: Backoff, absent_retry_s: float, outage: Outage
) -> float | None:
    """Try once; return the seconds to the next attempt, None if there is nothing left to do."""
    body = {
        "apiVersion": QUEUES.api_version,
        "kind": QUEUES.kind,
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": reclaimable},
    }
    try:
        await client.create(QUEUES, body, dict[str, Any], timeout_s=_TIMEOUT_S)
    except errors.AlreadyExists:
        return None
    except errors.NotFound:
        outage.answered(_NAME)
        # The informer has logged what to do. A single 404 may be a mistake; therefore the next attempt comes soon.
        return min(absent_retry_s, backoff.next())
    except (errors.Forbidden, errors.Invalid, errors.BadRequest) as error:
        log.warning(
            "queue could not be created; if it does not exist, create it or its jobs are not placed",
            queue=name,
            error=str(error),
        )
        return None
    except errors.ApiError as error:
        pause_s = backoff.next(error.retry_after_s)
        log_it = log.debug if outage.failed(_NAME, error) else log.warning
        log_it("queue could not be created; trying again", queue=name, error=str(error), pause_s=round(pause_s, 2))
        return pause_s
    log.info("queue created", queue=name)
    return None
