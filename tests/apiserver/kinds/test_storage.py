"""Claims, volumes and storage classes: defaults, refusals in the words of a real API server, and tables."""

import copy
from typing import Any

import pytest

from volcano_py.apiserver import ApiServer
from volcano_py.apiserver.status import StatusError
from volcano_py.apiserver.tables.built_in import LAYOUTS

CLAIM: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "c"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
VOLUME: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "v"},
    "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/tmp"}},
}
CLASS: dict[str, Any] = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "s"},
    "provisioner": "example.com/p",
}


def changed(obj: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {**obj, "spec": {**obj["spec"], **spec}}


@pytest.fixture
def server() -> ApiServer:
    return ApiServer()


def create(server: ApiServer, obj: dict[str, Any]) -> dict[str, Any]:
    return server.create(copy.deepcopy(obj))


def update(server: ApiServer, plural: str, namespace: str | None, name: str, **spec: Any) -> None:
    resource = server.resources.named(plural)
    server.registry.patch(resource, namespace, name, lambda obj: {**obj, "spec": {**obj["spec"], **spec}})


def row(kind: str, obj: dict[str, Any]) -> list[Any]:
    return [str(cell) for cell in LAYOUTS[kind].cells(obj)]


def test_a_claim_gets_defaults_and_the_default_class(server: ApiServer) -> None:
    mark = {"storageclass.kubernetes.io/is-default-class": "true"}
    create(server, {**CLASS, "metadata": {"name": "s", "annotations": mark}})

    made = create(server, CLAIM)

    assert made["spec"]["volumeMode"] == "Filesystem"
    assert made["spec"]["storageClassName"] == "s"
    assert made["status"] == {"phase": "Pending"}
    assert (
        create(server, {**changed(CLAIM, storageClassName=""), "metadata": {"name": "d"}})["spec"]["storageClassName"]
        == ""
    )


def test_a_volume_and_a_class_get_defaults(server: ApiServer) -> None:
    volume, found = create(server, VOLUME), create(server, CLASS)

    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert volume["spec"]["volumeMode"] == "Filesystem"
    assert volume["status"]["phase"] == "Pending"
    assert (found["reclaimPolicy"], found["volumeBindingMode"]) == ("Delete", "Immediate")


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        pytest.param(
            {**CLAIM, "spec": {}},
            "[spec.accessModes: Required value: at least 1 access mode is required, "
            "spec.resources[storage]: Required value]",
            id="empty-claim",
        ),
        pytest.param(
            changed(CLAIM, accessModes=["Foo"], resources={"requests": {"storage": "0"}}, volumeMode="X"),
            '[spec.accessModes: Unsupported value: "Foo": supported values: "ReadOnlyMany", "ReadWriteMany", '
            '"ReadWriteOnce", "ReadWriteOncePod", spec.resources[storage]: Invalid value: "0": must be greater than '
            'zero, spec.volumeMode: Unsupported value: "X": supported values: "Block", "Filesystem"]',
            id="wrong-claim",
        ),
        pytest.param(
            {**VOLUME, "spec": {}},
            "[spec.accessModes: Required value, spec.capacity: Required value, spec.capacity: Unsupported value: null: "
            'supported values: "storage", spec: Required value: must specify a volume type]',
            id="empty-volume",
        ),
        pytest.param(
            changed(VOLUME, nfs={"server": "a", "path": "/"}, persistentVolumeReclaimPolicy="X"),
            '[spec.persistentVolumeReclaimPolicy: Unsupported value: "X": supported values: "Delete", "Recycle", '
            '"Retain", spec.nfs: Forbidden: may not specify more than 1 volume type]',
            id="two-sources",
        ),
        pytest.param({**CLASS, "provisioner": ""}, "provisioner: Required value", id="class-without-provisioner"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_a_real_server(
    server: ApiServer, obj: dict[str, Any], message: str
) -> None:
    with pytest.raises(StatusError) as refusal:
        create(server, obj)

    assert refusal.value.code == 422
    assert str(refusal.value).endswith(f"is invalid: {message}")


def test_a_claim_takes_its_volume_once_and_keeps_the_rest(server: ApiServer) -> None:
    create(server, CLAIM)

    update(server, "persistentvolumeclaims", "default", "c", volumeName="v")

    for change in ({"volumeName": "w"}, {"storageClassName": "s", "volumeMode": "Block"}):
        with pytest.raises(StatusError, match="spec is immutable after creation"):
            update(server, "persistentvolumeclaims", "default", "c", **change)


def test_the_claim_of_a_volume_may_change_and_its_source_may_not(server: ApiServer) -> None:
    create(server, VOLUME)

    update(server, "persistentvolumes", None, "v", claimRef={"namespace": "default", "name": "c", "uid": "1"})

    with pytest.raises(StatusError, match="persistentvolumesource is immutable"):
        update(server, "persistentvolumes", None, "v", hostPath={"path": "/other"})


def test_tables_are_those_of_kubectl(server: ApiServer) -> None:
    volume = create(server, changed(VOLUME, accessModes=["ReadWriteMany", "ReadWriteOnce"], storageClassName="s"))
    claim = create(server, changed(CLAIM, storageClassName="s"))
    bound = {**claim, "spec": {**claim["spec"], "volumeName": "v"}}
    bound["status"] = {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    marked = {
        **CLASS,
        "metadata": {"name": "s", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    }

    assert row("persistentvolumes", volume)[:9] == ["v", "1Gi", "RWO,RWX", "Retain", "Pending", "", "s", "<unset>", ""]
    assert row("persistentvolumeclaims", claim)[:7] == ["c", "Pending", "", "", "", "s", "<unset>"]
    assert row("persistentvolumeclaims", bound)[:5] == ["c", "Bound", "v", "1Gi", "RWO"]
    assert row("storageclasses.storage.k8s.io", create(server, marked))[0] == "s (default)"
