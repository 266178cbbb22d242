"""Structural schemas of custom resources: prune unknown fields, fill in defaults, validate.

The keywords are those that structural schemas of apiextensions/v1 allow, except CEL rules
(`x-kubernetes-validations`), which are ignored. The formats that are checked are int32, int64 and date-time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from typing import Any

from volcano_py.apiserver.objects import Obj, copy_value, encode
from volcano_py.apiserver.status import FieldError, invalid_value, required, unsupported_value

_ROOT_FIELDS = frozenset({"apiVersion", "kind", "metadata"})
_BITS = {"int32": 31, "int64": 63}
_PLAIN_TYPES = {str: "string", bool: "boolean"}
_NO_LIMITS = frozenset({"type", "description", "title", "default", "nullable", "example"})
_COMBINING = frozenset({"allOf", "anyOf", "oneOf", "not"})
_DATE_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE)
_CLASS_OR_DOLLAR = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$", re.DOTALL)


def prune(value: Any, schema: Obj, path: str = "") -> list[str]:
    """Remove fields that the schema does not know, in place; returns their paths."""
    if schema.get("x-kubernetes-preserve-unknown-fields") is True and "properties" not in schema:
        return []
    pruned: list[str] = []
    if isinstance(value, dict):
        _prune_object(value, schema, path, pruned)
    elif isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, dict):
            for index, item in enumerate(value):
                pruned.extend(prune(item, items, f"{path}[{index}]"))
    return pruned


def _prune_object(value: Obj, schema: Obj, path: str, pruned: list[str]) -> None:
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    keeps = schema.get("x-kubernetes-preserve-unknown-fields") is True
    embedded = schema.get("x-kubernetes-embedded-resource") is True or not path
    for name in tuple(value):
        where = f"{path}.{name}" if path else name
        if embedded and name in _ROOT_FIELDS:
            continue
        if name in properties:
            pruned.extend(prune(value[name], properties[name], where))
        elif isinstance(additional, dict):
            pruned.extend(prune(value[name], additional, where))
        elif additional is not True and not keeps:
            del value[name]
            pruned.append(where)


def apply_defaults(value: Any, schema: Obj) -> None:
    """Fill in defaults of missing fields, in place; a null in a field that is not nullable counts as missing.

    So does a null in a map. An item of a list stays, and validation refuses it.
    """
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        additional = schema.get("additionalProperties")
        for name in [name for name, item in value.items() if item is None]:
            child = properties.get(name, additional)
            if isinstance(child, dict) and not child.get("nullable"):
                del value[name]
        for name, child in properties.items():
            if name not in value and "default" in child:
                value[name] = copy_value(child["default"])
            if name in value:
                apply_defaults(value[name], child)
        if isinstance(additional, dict):
            for name, item in value.items():
                if name not in properties:
                    apply_defaults(item, additional)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for item in value:
            apply_defaults(item, schema["items"])


def validate(value: Any, schema: Obj, path: str = "") -> list[FieldError]:
    """Validation errors of a value; paths are written as the API writes them."""
    if value is None and schema.get("nullable"):
        return []
    if _PLAIN_TYPES.get(type(value)) == schema.get("type") and schema.keys() <= _NO_LIMITS:
        return []  # most values are texts and flags without any limit
    problems = _type_problems(value, schema, path)
    if problems:
        return problems
    errors: list[FieldError] = []
    if "enum" in schema and value not in schema["enum"]:
        errors.append(unsupported_value(path, value, schema["enum"]))
    if isinstance(value, dict):
        errors.extend(_object_errors(value, schema, path))
    elif isinstance(value, list):
        errors.extend(_list_errors(value, schema, path))
    elif isinstance(value, str):
        errors.extend(_string_errors(value, schema, path))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        errors.extend(_number_errors(value, schema, path))
    if not schema.keys().isdisjoint(_COMBINING):
        errors.extend(_combined_errors(value, schema, path))
    return errors


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer" if _fits(value, "int64") else "number"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _fits(value: int, integer_format: str) -> bool:
    limit = 1 << _BITS[integer_format]
    return -limit <= value < limit


def _type_problems(value: Any, schema: Obj, path: str) -> list[FieldError]:
    found = _type_name(value)
    if schema.get("x-kubernetes-int-or-string"):
        wanted: tuple[str, ...] = ("integer", "string")
    elif schema.get("type"):
        wanted = (schema["type"],)
    else:
        return []
    if found in wanted or (found == "integer" and "number" in wanted):
        return []
    not_whole = found == "number" and wanted == ("integer",)
    if not_whole and schema.get("format") in _BITS:
        wanted, found = (schema["format"],), "float64"
    text = f'{path} in body must be of type {",".join(wanted)}: "{found}"'
    problem = FieldError(path, "FieldValueTypeInvalid", f'Invalid value: "{found}": {text}')
    return [problem, _no_integer(schema, path)] if not_whole else [problem]


def _no_integer(schema: Obj, path: str) -> FieldError:
    wanted = f"with format {schema['format']}" if schema.get("format") in _BITS else "(default format)"
    text = f'Invalid value: "": Checked value must be of type integer {wanted} in {path}'
    return FieldError("<nil>", "FieldValueInvalid", text)


def _in_body(path: str, value: Any, text: str) -> FieldError:
    return invalid_value(path, value, f"{path} in body {text}")


def _object_errors(value: Obj, schema: Obj, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    errors.extend(
        required(f"{path}.{name}" if path else name) for name in schema.get("required") or () if name not in value
    )
    for name, item in value.items():
        if not path and name in _ROOT_FIELDS:
            continue
        where = f"{path}.{name}" if path else name
        if name in properties:
            errors.extend(validate(item, properties[name], where))
        elif isinstance(additional, dict):
            errors.extend(validate(item, additional, where))
    if "minProperties" in schema and len(value) < schema["minProperties"]:
        errors.append(_in_body(path, len(value), f"should have at least {schema['minProperties']} properties"))
    if "maxProperties" in schema and len(value) > schema["maxProperties"]:
        detail = f"must have at most {schema['maxProperties']} items"
        errors.append(FieldError(path, "FieldValueTooMany", f"Too many: {len(value)}: {detail}"))
    return errors


def _list_errors(value: list[Any], schema: Obj, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if len(value) < schema.get("minItems", 0):
        errors.append(_in_body(path, len(value), f"should have at least {schema['minItems']} items"))
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        detail = f"must have at most {schema['maxItems']} items"
        errors.append(FieldError(path, "FieldValueTooMany", f"Too many: {len(value)}: {detail}"))
    items = schema.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            errors.extend(validate(item, items, f"{path}[{index}]"))
    errors.extend(_duplicates(value, schema, path))
    return errors


def _duplicates(value: list[Any], schema: Obj, path: str) -> list[FieldError]:
    kind = schema.get("x-kubernetes-list-type")
    if kind == "map":
        keys = schema.get("x-kubernetes-list-map-keys") or []
        named: list[Any] = [{key: item.get(key) for key in keys} if isinstance(item, dict) else item for item in value]
    elif kind == "set":
        named = value
    else:
        return []
    errors: list[FieldError] = []
    seen: set[bytes] = set()
    for index, name in enumerate(named):
        text = encode(name)
        if text in seen:
            errors.append(FieldError(f"{path}[{index}]", "FieldValueDuplicate", f"Duplicate value: {text.decode()}"))
        seen.add(text)
    return errors


@lru_cache(maxsize=1024)
def _pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern; its $ is the end of the text, as in Go, and never the place before a final newline."""
    return re.compile(_CLASS_OR_DOLLAR.sub(lambda found: r"\Z" if found[0] == "$" else found[0], text))


def _is_date_time(text: str) -> bool:
    """Say whether a text is a time as RFC 3339 has it; T and Z may be small letters."""
    found = _DATE_TIME.fullmatch(text)
    if found is None or found[2] > "23" or found[3] > "59" or found[4] > "59":
        return False
    try:
        date.fromisoformat(found[1])
    except ValueError:
        return False
    return True


def _string_errors(value: str, schema: Obj, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if len(value) < schema.get("minLength", 0):
        errors.append(_in_body(path, value, f"should be at least {schema['minLength']} chars long"))
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        detail = f"may not be more than {schema['maxLength']} bytes"
        errors.append(FieldError(path, "FieldValueTooLong", f"Too long: {detail}"))
    if "pattern" in schema and not _pattern(schema["pattern"]).search(value):
        errors.append(_in_body(path, value, f"should match '{schema['pattern']}'"))
    if schema.get("format") == "date-time" and not _is_date_time(value):
        errors.append(_in_body(path, value, f"must be of type date-time: {encode(value).decode()}"))
    return errors


def _number_errors(value: float, schema: Obj, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    low, high, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    if schema.get("format") in _BITS and not _fits(int(value), schema["format"]):
        errors.append(_no_integer(schema, path))
    if low is not None:
        if schema.get("exclusiveMinimum") and value <= low:
            errors.append(_in_body(path, value, f"should be greater than {low}"))
        elif value < low:
            errors.append(_in_body(path, value, f"should be greater than or equal to {low}"))
    if high is not None:
        if schema.get("exclusiveMaximum") and value >= high:
            errors.append(_in_body(path, value, f"should be less than {high}"))
        elif value > high:
            errors.append(_in_body(path, value, f"should be less than or equal to {high}"))
    if step and value % step:
        errors.append(_in_body(path, value, f"should be a multiple of {step}"))
    return errors


def _combined_errors(value: Any, schema: Obj, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for branch in schema.get("allOf") or ():
        errors.extend(validate(value, branch, path))
    matches: Callable[[Obj], bool] = lambda branch: not validate(value, branch, path)  # noqa: E731 - used three times below
    if schema.get("anyOf") and not any(matches(branch) for branch in schema["anyOf"]):
        errors.append(
            FieldError(
                "<nil>", "FieldValueInvalid", f'Invalid value: "": "{path}" must validate at least one schema (anyOf)'
            )
        )
    if schema.get("oneOf") and sum(matches(branch) for branch in schema["oneOf"]) != 1:
        errors.append(
            FieldError(
                "<nil>",
                "FieldValueInvalid",
                f'Invalid value: "": "{path}" must validate one and only one schema (oneOf)',
            )
        )
    if schema.get("not") and matches(schema["not"]):
        errors.append(
            FieldError("<nil>", "FieldValueInvalid", f'Invalid value: "": "{path}" must not validate the schema (not)')
        )
    return errors
