"""HyperNodes: they have members, and the patterns that choose members can be used."""

from collections.abc import Mapping
from typing import Any, Final

from volcano_py.admission.contract import CREATE, UPDATE, Joining, Options, Refusal, Request, Verdict, View
from volcano_py.admission.reading import invalid, part, parts, text, wrong_operation
from volcano_py.api.go_regexp import PatternError, compile_pattern
from volcano_py.api.topology import HYPER_NODE_MEMBER

_SHOWN: Final = ".spec.members"
"""Volcano's sentences begin with a dot, and do not say which member they are about."""


def validate(request: Request, view: View, options: Options) -> Verdict:
    """Refuse a HyperNode without members, and one whose pattern is none; warn of members that select nothing."""
    if request.operation not in (CREATE, UPDATE):
        return wrong_operation("'CREATE' or 'UPDATE'")
    members = parts(request.object, "spec", "members")
    refusals: list[Refusal] = []
    warnings: list[str] = []
    if not members:
        hint = "add a member: a node, or a HyperNode of a lower tier"
        sentence = f"{_SHOWN}: Invalid value: null: member must have at least one member"
        refusals.append(Refusal(sentence, "spec.members", hint))
    for index, member in enumerate(members):
        if why := _selects_nothing(member):
            warnings.append(f"spec.members[{index}].selector: {why}")
        pattern = text(member, "selector", "regexMatch", "pattern")
        try:
            compile_pattern(pattern)
        except PatternError as error:
            path = f"spec.members[{index}].selector.regexMatch.pattern"
            hint = "write a regular expression in the syntax of RE2, such as node-[0-9]+"
            detail = f"member regexMatch pattern is invalid: {error}"
            refusals.append(invalid(path, pattern, detail, hint, f"{_SHOWN}.selector.regexMatch.pattern"))
    return Verdict(tuple(refusals), warnings=tuple(warnings), joining=Joining.LIST)


def _selects_nothing(member: Mapping[str, Any]) -> str:
    """Return why a member selects nothing, whatever exists, and what to do; "" if it may select something."""
    selector = part(member, "selector")
    if "exactMatch" in selector:
        return ""
    if text(member, "type") == HYPER_NODE_MEMBER:
        return "it selects nothing: a HyperNode can be selected only by exactMatch.name"
    return "" if selector else "it selects nothing: add exactMatch, regexMatch or labelMatch"
