"""Whether a queue takes work: what jobs and PodGroups ask about the queue that they name."""

from volcano_py.admission.contract import Obj, Refusal, View
from volcano_py.admission.reading import name_of, not_found, text
from volcano_py.api import keys


def missing(name: str) -> str:
    """Return the words of the API server for a queue that does not exist."""
    return not_found("queue", keys.SCHEDULING_GROUP, name)


def is_open(queue: Obj) -> bool:
    """Say whether a queue takes work. Only the queue controller writes the state; until it has, the queue is open."""
    return text(queue, "status", "state") in ("", keys.QUEUE_OPEN)


def not_open(queue: Obj, work: str, path: str, end: str = "") -> Refusal:
    """Return the refusal of work for a queue that is not open."""
    name, state = name_of(queue), text(queue, "status", "state")
    hint = f"open it: vcctl queue operate -a open -n {name}; or name another queue"
    sentence = f"can only submit {work} to queue with state `Open`, queue `{name}` status is `{state}`{end}"
    return Refusal(sentence, path, hint)


def open_queues(view: View, *, exists: bool = False) -> str:
    """Return a way out for a queue that takes no jobs, because it does not exist or is the root: those that are open.

    A queue with children takes no jobs either.
    """
    queues = list(view.queues())
    parents = {text(queue, "spec", "parent") for queue in queues} | {keys.ROOT_QUEUE}
    names = sorted(name for queue in queues if is_open(queue) and (name := name_of(queue)) not in parents)
    shown = ", ".join(names[:_SHOWN]) + (", and others" if len(names) > _SHOWN else "")
    others = f"name one that is open: {shown}" if names else ""
    if exists:
        return others or "create a queue and name it"
    return f"create the queue first, or {others}" if others else "create the queue first"


_SHOWN = 5
