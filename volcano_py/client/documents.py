"""Objects from YAML files."""

import json
import re
from pathlib import Path
from typing import Any, Final

import yaml

from volcano_py.client.problem import Problem, in_one_line
from volcano_py.kube.resource import Resource

_MERGE: Final = "tag:yaml.org,2002:merge"


def read_documents(path: str, kind: Resource, *, generated: bool = False) -> list[dict[str, Any]]:
    """Return the objects of a file; all of them must be of the kind."""
    if not path:
        raise Problem(f"the file with the {kind.plural} must be specified: --file FILE")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise Problem(f"file {path} cannot be read: {error.strerror}; check its name") from error
    except ValueError as error:
        raise Problem(f"file {path} is not text in UTF-8; name a YAML file") from error
    try:
        found = [one for one in yaml.load_all(text, Loader=_Plain) if one is not None]
    except _Twice as error:
        raise Problem(f"file {path} has {error}; leave one of them out") from error
    except yaml.YAMLError as error:
        raise Problem(f"file {path} is not YAML: {in_one_line(error)}") from error
    if not found:
        raise Problem(f"file {path} has no object; write a {kind.kind} of {kind.api_version} there")
    for one in found:
        _check(one, path, kind, generated=generated)
    return found


class _Twice(yaml.YAMLError):
    """A map has a key twice; YAML forbids that, and the library takes the last one."""


class _Plain(yaml.SafeLoader):
    """Reads scalars as kubectl does, and refuses keys that a map has twice.

    For kubectl, dates, durations such as 1:30:00 and a bare = are text. So is .inf here, since JSON has no such number.
    """

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Return a map as it is written."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                continue
            line = key.start_mark.line + 1
            if key.value in lines:
                raise _Twice(f"the key {key.value} twice in one map, in lines {lines[key.value]} and {line}")
            lines[key.value] = line
        return node


_AS_IN_PYYAML: Final = ("bool", "null", "merge")
_INT: Final = re.compile(r"^[-+]?(?:0b[01][01_]*|0[0-7_]*|0x[0-9a-fA-F][0-9a-fA-F_]*|[1-9][0-9_]*)$")
_FLOAT: Final = re.compile(r"^[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?$")

_Plain.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in _AS_IN_PYYAML]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Plain.add_implicit_resolver("tag:yaml.org,2002:int", _INT, list("-+0123456789"))
_Plain.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))


def _check(obj: Any, path: str, kind: Resource, *, generated: bool) -> None:
    if not isinstance(obj, dict):
        raise Problem(
            f"file {path} has a document that is no {kind.kind}: it is no map with apiVersion, kind and metadata"
        )
    is_a = (obj.get("apiVersion") or kind.api_version, obj.get("kind") or kind.kind)
    if is_a != (kind.api_version, kind.kind):
        raise Problem(f"file {path} has a {is_a[1]} of {is_a[0]}; this command takes {kind.kind} of {kind.api_version}")
    if not isinstance(obj.get("metadata"), dict):
        raise Problem(f"file {path} has a {kind.kind} without metadata; write metadata.name")
    texts = {field: obj["metadata"].get(field) for field in ("name", "generateName", "namespace")}
    for field, given in texts.items():
        if given is not None and not isinstance(given, str):
            what = "a number" if type(given) in (int, float) else "no text"
            raise Problem(
                f"file {path} has a {kind.kind} whose metadata.{field} is {what}: {json.dumps(given, default=str)}; "
                "write it in quotes"
            )
    if not (texts["name"] or (generated and texts["generateName"])):
        raise Problem(f"file {path} has a {kind.kind} without a name; write metadata.name")
    obj.update(apiVersion=kind.api_version, kind=kind.kind)
