"""The page about the installation: its tables list exactly what the manifests install."""

import re
from collections import Counter

import yaml

from tests.packaging.pages import DOCS, REPOSITORY, rows
from tests.packaging.test_deployment import MANIFESTS, kustomization, objects
from volcano_py.admission.options import LEASE, SECRET
from volcano_py.kube.lease import LeaseOptions

PAGE = DOCS / "install.md"
TEXT = PAGE.read_text()


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def tables(section: str) -> list[list[str]]:
    return list(rows(PAGE, section))


def test_the_table_lists_every_object_and_no_other() -> None:
    listed = Counter(
        (kind.strip(), name)
        for kinds, cell, *_ in tables("Objects")
        for kind in kinds.split(",")
        for name in names(cell)
        if re.fullmatch(r"[A-Z][A-Za-z]+(, [A-Z][A-Za-z]+)*", kinds)
    )
    made = {("Queue", "root"), ("Queue", "default"), ("Secret", SECRET), ("ConfigMap", "volcano-admission-notes")}
    made |= {("Lease", name) for name in ("volcano", "vc-controller-manager", LEASE.name)}
    installed = {(one["kind"], one["metadata"]["name"]) for one in objects()}

    assert [one for one, count in listed.items() if count > 1] == []
    assert listed.keys() - made == {one for one in installed if one[0] != "CustomResourceDefinition"}
    assert made <= listed.keys()
    assert LeaseOptions(name="x").namespace == "volcano-system"


def test_the_parts_are_those_of_the_kustomization() -> None:
    parts = [names(cells[0])[0] for cells in tables("Objects") if cells[0].startswith("`manifests/")]

    assert parts == [f"manifests/{one}" for one in kustomization(MANIFESTS)["resources"]]


def test_every_overlay_is_listed() -> None:
    commands = [names(cells[0])[0] for cells in tables("Variants")]
    overlays = {f"kubectl apply -k manifests/overlays/{one.name}" for one in (MANIFESTS / "overlays").iterdir()}

    assert set(commands) == overlays


def test_priorities_have_the_values_of_the_manifests() -> None:
    told = {names(cells[0])[0]: int(cells[1]) for cells in tables("Priorities for jobs")}

    assert told == {one["metadata"]["name"]: one["value"] for one in objects() if one["kind"] == "PriorityClass"}


def test_the_roles_of_users_are_listed() -> None:
    told = {names(cells[0])[0] for cells in tables("Rights for users")}
    roles = {one["metadata"]["name"] for one in objects(MANIFESTS / "users") if one["kind"] == "ClusterRole"}

    assert told == roles


def test_kustomizations_of_the_page_name_what_exists() -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    found = [one for one in map(yaml.safe_load, blocks) if one["kind"] == "Kustomization"]
    paths = [path for one in found for path in (*one["resources"], *one.get("components", []))]

    assert len(found) == 2
    for path in paths:
        inside = path.removeprefix("../volcano-py/")
        assert path == "address.yaml" or (REPOSITORY / inside / "kustomization.yaml").exists()


def test_paths_of_the_page_exist() -> None:
    paths = [path for path in re.findall(r"(?<![\w/.-])manifests/[\w./-]*", TEXT) if not path.endswith("/")]

    assert [path for path in paths if not (REPOSITORY / path.rstrip(".")).exists()] == []
