"""Job flows: what they depend on is there, and nothing waits for itself.

A flow without steps is fine, and so is a name that occurs twice: the last step of that name counts.
"""

from collections.abc import Collection, Mapping
from typing import Final

from volcano_py.admission.contract import ALLOWED, CREATE, UPDATE, Options, Refusal, Request, Verdict, View
from volcano_py.admission.graph import in_order, unknown_targets
from volcano_py.admission.reading import parts, text, texts, wrong_operation

_NOT_DAG: Final = "jobflow Flow is not DAG"
_UNDEFINED: Final = "vertex is not defined"


def validate(request: Request, view: View, options: Options) -> Verdict:
    """Refuse a job flow that could never end."""
    if request.operation not in (CREATE, UPDATE):
        return wrong_operation("'CREATE' or 'UPDATE'")
    graph = {text(flow, "name"): texts(flow, "dependsOn", "targets") for flow in parts(request.object, "spec", "flows")}
    refusals = flaws(graph)
    return Verdict(refusals) if refusals else ALLOWED


def flaws(graph: Mapping[str, Collection[str]]) -> tuple[Refusal, ...]:
    """Return what is wrong with steps and what each depends on."""
    if unknown := unknown_targets(graph):
        hint = f"add a flow for each, or take it out of dependsOn.targets; flows are: {', '.join(graph)}"
        return (Refusal(f"{_NOT_DAG}: {_UNDEFINED}: {', '.join(unknown)}", "spec.flows", hint),)
    if in_order(graph) is None:
        hint = "take one of the targets out of dependsOn so that no flow waits for itself"
        return (Refusal(_NOT_DAG, "spec.flows", hint),)
    return ()
