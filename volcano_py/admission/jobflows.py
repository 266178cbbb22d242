"""Job flows: what they depend on is there, and nothing waits for itself.

A flow without steps is fine, and so is a name that occurs twice: the last step of that name counts, and who writes it
gets a warning.
"""

from collections import Counter
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
    flows = parts(request.object, "spec", "flows")
    graph = {text(flow, "name"): texts(flow, "dependsOn", "targets") for flow in flows}
    repeated = [name for name, times in Counter(text(flow, "name") for flow in flows).items() if times > 1]
    warnings = tuple(f"spec.flows: only the last flow with the name {name} counts" for name in repeated)
    refusals = flaws(graph)
    return Verdict(refusals, warnings=warnings) if refusals or warnings else ALLOWED


def flaws(graph: Mapping[str, Collection[str]]) -> tuple[Refusal, ...]:
    """Return what is wrong with steps and what each depends on."""
    if unknown := unknown_targets(graph):
        hint = f"add a flow for each, or take it out of dependsOn.targets; flows are: {', '.join(graph)}"
        return (Refusal(f"{_NOT_DAG}: {_UNDEFINED}: {', '.join(unknown)}", "spec.flows", hint),)
    if in_order(graph) is None:
        hint = "take one of the targets out of dependsOn so that no flow waits for itself"
        return (Refusal(_NOT_DAG, "spec.flows", hint),)
    return ()
