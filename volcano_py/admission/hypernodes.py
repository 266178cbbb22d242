"""HyperNodes: they have members, and the patterns that choose members can be used."""

from typing import Final

from volcano_py.admission.contract import CREATE, UPDATE, Joining, Options, Refusal, Request, Verdict, View
from volcano_py.admission.reading import invalid, parts, text, wrong_operation
from volcano_py.api.go_regexp import PatternError, compile_pattern

_SHOWN: Final = ".spec.members"
"""Volcano's sentences begin with a dot, and do not say which member they are about."""


def validate(request: Request, view: View, options: Options) -> Verdict:
    """Refuse a HyperNode without members, and one whose pattern is none."""
    if request.operation not in (CREATE, UPDATE):
        return wrong_operation("'CREATE' or 'UPDATE'")
    members = parts(request.object, "spec", "members")
    refusals: list[Refusal] = []
    if not members:
        hint = "add a member: a node, or a HyperNode of a lower tier"
        sentence = f"{_SHOWN}: Invalid value: null: member must have at least one member"
        refusals.append(Refusal(sentence, "spec.members", hint))
    for index, member in enumerate(members):
        pattern = text(member, "selector", "regexMatch", "pattern")
        try:
            compile_pattern(pattern)
        except PatternError as error:
            path = f"spec.members[{index}].selector.regexMatch.pattern"
            hint = "write a regular expression in the syntax of RE2, such as node-[0-9]+"
            detail = f"member regexMatch pattern is invalid: {error}"
            refusals.append(invalid(path, pattern, detail, hint, f"{_SHOWN}.selector.regexMatch.pattern"))
    return Verdict(tuple(refusals), joining=Joining.LIST)
