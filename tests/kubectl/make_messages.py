"""Write volcano_py/apiserver/protobuf/messages.yaml anew, from the types of the k8s.io/api module in Go's cache.

`python -m tests.kubectl.make_messages`, after `tests/controlplane/go.mod` names another Kubernetes version.
The table holds only what decoding needs: numbers, JSON names and types of fields.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.controlplane.binaries import KUBERNETES_VERSION

TARGET = Path(__file__).resolve().parents[2] / "volcano_py" / "apiserver" / "protobuf" / "messages.yaml"
GROUPS = (
    "core/v1",
    "apps/v1",
    "batch/v1",
    "policy/v1",
    "rbac/v1",
    "scheduling/v1",
    "storage/v1",
    "coordination/v1",
    "admissionregistration/v1",
    "autoscaling/v1",
)
ALIASES = {"v1": "core/v1", "apiv1": "core/v1", "corev1": "core/v1", "metav1": "meta/v1", "rbacv1": "rbac/v1"}
SPECIAL = {
    "resource.Quantity": "quantity",
    "meta/v1.Time": "time",
    "meta/v1.MicroTime": "time",
    "intstr.IntOrString": "int-or-string",
    "runtime.RawExtension": "json",
    "meta/v1.FieldsV1": "json",
}
PLAIN = {
    "string": "string",
    "types.UID": "string",
    "bool": "bool",
    "float64": "double",
    "[]byte": "bytes",
    **dict.fromkeys(("int32", "int64", "int", "byte"), "int"),
}
FIELD = re.compile(r'^\t(?:(\w+)\s+)?(\S+)\s+`json:"([^"]*)"[^`]*? protobuf:"([^"]*)"')


class Source:
    """The Go types of one package."""

    def __init__(self, package: str, folder: Path) -> None:
        self.package = package
        text = "\n".join(path.read_text() for path in sorted(folder.glob("*.go")) if not path.name.startswith("gen"))
        self.structs = dict(re.findall(r"^type (\w+) struct \{\n(.*?)^\}", text, re.M | re.S))
        self.named = dict(re.findall(r"^type (\w+) ((?:\[\]|map\[|\*)?[\w.\[\]*]+)\s*$", text, re.M))


def main() -> int:
    """Write the table."""
    cache = Path(subprocess.run(["go", "env", "GOMODCACHE"], capture_output=True, text=True, check=True).stdout.strip())
    version = "v0" + KUBERNETES_VERSION.removeprefix("v1")
    api = cache / "k8s.io" / f"api@{version}"
    sources = {group: Source(group, api / group) for group in GROUPS}
    meta = cache / "k8s.io" / f"apimachinery@{version}" / "pkg" / "apis" / "meta" / "v1"
    sources["meta/v1"] = Source("meta/v1", meta)
    lines = ["# Fields of Kubernetes' messages on the wire: number, JSON name (- where it is inline), type.", "#"]
    lines += ["# Types: [] a list, {} a map of, ? tells zero from absent. Made by tests/kubectl/make_messages.py."]
    for package, source in sources.items():
        for name, body in sorted(source.structs.items()):
            rows = [row for line in body.splitlines() if (row := field_of(line, package, sources))]
            if rows:
                lines.append(f"{package}.{name}:")
                lines.extend(f"- {row}" for row in rows)
    TARGET.write_text("\n".join(lines) + "\n")
    print(f"{TARGET}: {len(lines)} lines")
    return 0


def field_of(line: str, package: str, sources: dict[str, Source]) -> str:
    """The table row of a field; empty for lines that are not fields."""
    match = FIELD.match(line)
    if match is None:
        return ""
    _, go_type, json_tag, wire = match.groups()
    number, name = wire.split(",")[1], json_tag.split(",")[0] or "-"
    return f"{number} {name} {type_of(go_type, package, sources)}"


def type_of(go_type: str, package: str, sources: dict[str, Source]) -> str:
    """The type as the table writes it."""
    if go_type in PLAIN:
        return PLAIN[go_type]
    if go_type.startswith("*"):
        return "?" + type_of(go_type[1:], package, sources).removeprefix("?")
    if go_type.startswith("[]"):
        return "[]" + type_of(go_type[2:], package, sources)
    if go_type.startswith("map["):
        return "{}" + type_of(go_type.partition("]")[2], package, sources)
    prefix, dot, name = go_type.rpartition(".")
    owner = ALIASES.get(prefix, prefix) if dot else package
    full = f"{owner}.{name}"
    if full in SPECIAL:
        return SPECIAL[full]
    source = sources.get(owner)
    if source is None:
        raise LookupError(f"{package}: nothing is known about {go_type}")
    if name in source.structs:
        return full
    return type_of(source.named[name], owner, sources)


if __name__ == "__main__":
    sys.exit(main())
