"""Area resources: the arithmetic of resource lists."""

from collections.abc import Callable
from typing import Any, Final

from tests.conformance.handlers.vectors import resource_list, same_vector
from tests.conformance.operations import Compare, Operation, Outcome, same, same_set
from tests.conformance.row_files import Case
from volcano_py.model.resource_lists import Missing, ResourceList
from volcano_py.model.resources import amounts_of

List = ResourceList
NAMES: Final[dict[str, Compare]] = {"resources": same_set}
YES_OR_NO: Final[dict[str, Compare]] = {"result": same}
VECTOR: Final[dict[str, Compare]] = {"result": same_vector}
NAMES_AND_YES_OR_NO: Final[dict[str, Compare]] = {**NAMES, **YES_OR_NO}


def _unary(run: Callable[[List], Outcome], expects: dict[str, Compare]) -> Operation:
    return Operation(lambda case: run(_vector(case, "r")), expects, frozenset({"r"}))


def _binary(run: Callable[[List, List], Outcome], expects: dict[str, Compare]) -> Operation:
    return Operation(lambda case: run(_vector(case, "r"), _vector(case, "rr")), expects, frozenset({"r", "rr"}))


def _with_default(run: Callable[[List, List, Missing], Any], expects: dict[str, Compare]) -> Operation:
    """Return an operation on two lists, given the default for missing scalars."""

    def handle(case: Case) -> Outcome:
        answer = run(_vector(case, "r"), _vector(case, "rr"), Missing(case.input["default"]))
        return answer if isinstance(answer, dict) else {"result": answer}

    return Operation(handle, expects, frozenset({"r", "rr", "default"}))


def _with_request(run: Callable[[List, List, List], tuple[str, ...]]) -> Operation:
    """Return an operation that lists some of the requested resources; without a request there are none."""

    def handle(case: Case) -> Outcome:
        found = run(_vector(case, "r"), _vector(case, "rr"), _vector(case, "req"))
        return {"resources": found, "result": bool(found)}

    return Operation(handle, NAMES_AND_YES_OR_NO, frozenset({"r", "rr", "req"}))


def _fits_what_is_asked(case: Case) -> Outcome:
    left, right = _vector(case, "r"), _vector(case, "rr")
    over = (
        left.over_asked(right, _vector(case, "req"))
        if case.input.get("req") is not None
        else left.over(right, Missing.ZERO)
    )
    return {"resources": over, "result": not over}


def _vector(case: Case, key: str) -> List:
    return resource_list(case.input.get(key) or {})


def _difference(left: List, right: List, missing: Missing) -> Outcome:
    more, less = left.difference(right, missing)
    return {"increased": more, "decreased": less}


def _over(left: List, right: List, missing: Missing) -> Outcome:
    over = left.over(right, missing)
    return {"resources": over, "result": bool(over)}


OPERATIONS: Final = {
    "newResource": Operation(
        lambda case: {"result": List.of(amounts_of(case.input.get("resourceList", {}), "resourceList"))},
        VECTOR,
        frozenset({"resourceList"}),
    ),
    "addScalar": Operation(
        lambda case: {"result": _vector(case, "r").with_scalar(case.input["scalar"], case.input["quantity"])},
        VECTOR,
        frozenset({"r", "scalar", "quantity"}),
    ),
    "isZero": Operation(
        lambda case: {"result": _vector(case, "r").is_zero(case.input["resource"])},
        YES_OR_NO,
        frozenset({"r", "resource"}),
    ),
    "string": _unary(lambda r: {"text": str(r)}, {"text": same}),
    "setMax": _binary(lambda r, rr: {"result": r.maximum(rr)}, VECTOR),
    "add": _binary(lambda r, rr: {"result": r + rr}, VECTOR),
    "sub": _binary(lambda r, rr: {"result": r - rr}, VECTOR),
    "intersection": _binary(lambda r, rr: {"resources": r.common(rr)}, NAMES),
    "intersectionIgnoringPods": _binary(lambda r, rr: {"resources": r.common_asked(rr)}, NAMES),
    "diff": _with_default(_difference, {"increased": same_vector, "decreased": same_vector}),
    "less": _with_default(List.less_than, YES_OR_NO),
    "lessEqual": _with_default(List.at_most, YES_OR_NO),
    "lessPartly": _with_default(List.less_in_some, YES_OR_NO),
    "lessEqualPartly": _with_default(List.at_most_in_some, YES_OR_NO),
    "equal": _with_default(lambda r, rr, _: r.equals(rr), YES_OR_NO),
    "minDimension": _with_default(List.minimum, VECTOR),
    "lessEqualWithResourcesName": _with_default(_over, NAMES),
    "greaterPartly": _with_default(_over, NAMES_AND_YES_OR_NO),
    "lessEqualWithDimension": Operation(_fits_what_is_asked, NAMES_AND_YES_OR_NO, frozenset({"r", "rr", "req"})),
    "lessEqualPartlyWithDimension": _with_request(List.within_asked),
    "lessEqualPartlyWithDimensionZeroFiltered": _with_request(List.within_asked_nonzero),
    "greaterPartlyWithDimension": _with_request(List.over_asked),
    "greaterPartlyWithRelevantDimensions": _with_request(List.over_asked_where_given),
}
