"""PodGroups: the queue of their namespace, and the queue that they name."""

from collections.abc import Mapping
from typing import Final

from volcano_py.admission.contract import ALLOWED, CREATE, UPDATE, Joining, Options, Refusal, Request, Verdict, View
from volcano_py.admission.queue_state import is_open, missing, not_open, open_queues
from volcano_py.admission.reading import part, parts, text, wrong_operation
from volcano_py.admission.topology import tier_given_twice
from volcano_py.api import keys

_STAYS: Final = (
    f'the PodGroup stays in queue "{{}}", which the annotation {keys.QUEUE_NAME} of its namespace names; '
    f'to move it to queue "{keys.DEFAULT_QUEUE}", remove this annotation first'
)


def mutate(request: Request, view: View, options: Options) -> Verdict:
    """Put a PodGroup without a queue of its own into the queue that its namespace names.

    Some operators write the whole spec again in every reconciliation, without a queue. So a PodGroup in the queue of
    its namespace also stays there.
    """
    if request.operation not in (CREATE, UPDATE):
        return wrong_operation("'CREATE' or 'UPDATE'")
    if text(request.object, "spec", "queue") not in ("", keys.DEFAULT_QUEUE):
        return ALLOWED
    if not isinstance(request.object.get("spec"), Mapping | None):
        return ALLOWED  # the definition of PodGroups refuses it
    namespace = text(request.object, "metadata", "namespace") or request.namespace
    queue = view.namespace_annotations(namespace).get(keys.QUEUE_NAME, "")
    if not queue or queue == text(request.object, "spec", "queue"):
        return ALLOWED
    if request.operation == UPDATE and text(request.old, "spec", "queue") != queue:
        return ALLOWED
    warnings = (f"spec.queue: {_STAYS.format(queue)}",) if request.operation == UPDATE else ()
    if request.object.get("spec") is None:
        return Verdict(patch=({"op": "add", "path": "/spec", "value": {"queue": queue}},), warnings=warnings)
    return Verdict(patch=({"op": "add", "path": "/spec/queue", "value": queue},), warnings=warnings)


def validate(request: Request, view: View, options: Options) -> Verdict:
    """Refuse a PodGroup whose queue does not take work, and a topology that is given twice."""
    if request.operation != CREATE:
        return Verdict((Refusal(f"unsupported operation {request.operation}"),))
    spec = part(request.object, "spec")
    refusals = [*_queue(text(spec, "queue"), view), *tier_given_twice(spec, "spec", after=".")]
    for index, policy in enumerate(parts(spec, "subGroupPolicy")):
        before = f"in subGroupPolicy '{text(policy, 'name')}': "
        refusals += tier_given_twice(policy, f"spec.subGroupPolicy[{index}]", before, ".")
    return Verdict(tuple(refusals), joining=Joining.SEMICOLON)


def _queue(name: str, view: View) -> tuple[Refusal, ...]:
    if not name:
        return ()
    queue = view.queue(name)
    if queue is None:
        return (Refusal(f"unable to find queue: {missing(name)}", "spec.queue", open_queues(view)),)
    return () if is_open(queue) else (not_open(queue, "PodGroup", "spec.queue"),)
