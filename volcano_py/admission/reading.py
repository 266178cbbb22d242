"""Reading objects as JSON brings them: a field of another type counts as absent, so no object makes a rule fail.

The definitions of Volcano's kinds say which types fields have, and the API server holds objects to them.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec

from volcano_py.admission.contract import ALLOWED, Refusal, Verdict

_NOTHING: Final[Mapping[str, Any]] = {}
T = TypeVar("T")


def part(value: Any, *path: str) -> Mapping[str, Any]:
    """Return the object at a path, an empty one if there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else _NOTHING


def text(value: Any, *path: str) -> str:
    """Return the text at a path, "" if there is none."""
    found = part(value, *path[:-1]).get(path[-1])
    return found if isinstance(found, str) else ""


def number(value: Any, *path: str) -> int | None:
    """Return the whole number at a path, None if there is none."""
    found = part(value, *path[:-1]).get(path[-1])
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def texts(value: Any, *path: str) -> Sequence[str]:
    """Return the list of texts at a path, without what is no text."""
    return [item for item in entries(value, *path) if isinstance(item, str)]


def parts(value: Any, *path: str) -> Sequence[Mapping[str, Any]]:
    """Return the list of objects at a path; what is no object is an empty one, so that positions stay."""
    found = entries(value, *path)
    return [item if isinstance(item, dict) else _NOTHING for item in found] if found else ()


def entries(value: Any, *path: str) -> Sequence[Any]:
    """Return the list at a path, an empty one if there is none."""
    found = part(value, *path[:-1]).get(path[-1])
    return found if isinstance(found, list) else ()


def name_of(value: Any) -> str:
    """Return the name of an object."""
    return text(value, "metadata", "name")


def annotations_of(value: Any) -> Mapping[str, str]:
    """Return the annotations of an object that are text."""
    found = part(value, "metadata", "annotations")
    return {key: item for key, item in found.items() if isinstance(item, str)}


def typed(value: Any, kind: type[T]) -> T | Refusal:
    """Return the object as its type, or the refusal that names the first field of another type."""
    wire = value if isinstance(value, Mapping) else {}
    wire = {**wire, "metadata": dict(part(wire, "metadata"))}
    with suppress(msgspec.ValidationError):
        return msgspec.convert(wire, kind)
    try:
        return msgspec.convert(_without_nulls(wire), kind)
    except RecursionError:
        return too_deep()
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at ")
        return Refusal(f"{what} at {path.strip('`$.')}", path.strip("`$."), "give the field a value of this type")


def _without_nulls(value: Any, name: str = "") -> Any:
    """Return an object without fields that are null, as they are the same as absent; null arguments are none."""
    if isinstance(value, Mapping):
        if name == "plugins":
            return {key: [] if item is None else item for key, item in value.items()}
        return {key: _without_nulls(item, key) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def invalid(field: str, value: str, detail: str, hint: str = "", shown: str = "") -> Refusal:
    """Return a refusal in the words of Kubernetes; ``shown`` is the path in the sentence, if it is another."""
    return Refusal(f"{shown or field}: Invalid value: {quoted(value)}: {detail}", field, hint)


def quoted(value: str) -> str:
    """Return a text in quotation marks, as Go's ``%q`` writes it."""
    return msgspec.json.encode(value).decode()


def words(items: Sequence[str]) -> str:
    """Return texts as Go prints a list of them."""
    return f"[{' '.join(items)}]"


def not_found(kind: str, group: str, name: str) -> str:
    """Return the words of the API server for an object that does not exist."""
    return f"{kind}.{group} {quoted(name)} not found"


def too_deep() -> Refusal:
    """Return the refusal of what stands inside of itself so often that nobody could read it."""
    return Refusal("the object is nested too deeply", "spec", "remove what is no field of this kind")


def wrong_operation(allowed: str) -> Verdict:
    """Return the refusal of an operation that a rule is not for."""
    return Verdict((Refusal(f"expect operation to be {allowed}"),))


def refused_or_allowed(*refusals: Refusal) -> Verdict:
    """Return a verdict with these refusals, or that nothing is wrong."""
    return Verdict(refusals) if refusals else ALLOWED
