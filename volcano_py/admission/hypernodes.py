"""HyperNodes: they have members, and the patterns that choose members can be used."""

from volcano_py.admission.contract import CREATE, UPDATE, Joining, Options, Refusal, Request, Verdict, View
from volcano_py.admission.reading import invalid, parts, text, wrong_operation
from volcano_py.api.go_regexp import PatternError, compile_pattern


def validate(request: Request, view: View, options: Options) -> Verdict:
    """Refuse a HyperNode without members, and one whose pattern is none."""
    if request.operation not in (CREATE, UPDATE):
        return wrong_operation("'CREATE' or 'UPDATE'")
    members = parts(request.object, "spec", "members")
    refusals: list[Refusal] = []
    if not members:
        hint = "add a member: a node, or a HyperNode of a lower tier"
        refusals.append(Refusal("spec.members: Required value: the HyperNode names no member", "spec.members", hint))
    for index, member in enumerate(members):
        pattern = text(member, "selector", "regexMatch", "pattern")
        try:
            compile_pattern(pattern)
        except PatternError as error:
            path = f"spec.members[{index}].selector.regexMatch.pattern"
            hint = "write a regular expression in the syntax of RE2, such as node-[0-9]+"
            refusals.append(invalid(path, pattern, f"member regexMatch pattern is invalid: {error}", hint))
    return Verdict(tuple(refusals), joining=Joining.LIST)
