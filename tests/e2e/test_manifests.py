"""`manifests/` on a real API server installs the custom resources and grants exactly the rights that are used."""

from __future__ import annotations

import os

import pytest

from tests.controlplane.install import Installed
from tests.controlplane.rest import ApiFailure, Http
from tests.e2e.control_plane import ControlPlane
from volcano_py.testing import a_group, a_queue, manifest


@pytest.mark.usefixtures("installed")
def test_podgroups_show_the_columns_that_users_know(control_plane: ControlPlane, namespace: str) -> None:
    group = a_group("gang", namespace="", queue="", min_available=3)
    control_plane.request(
        "POST",
        f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{namespace}/podgroups",
        manifest(group, status={"phase": "Inqueue", "running": 2}),
    )

    head, row = control_plane.kubectl("get", "pg", "-n", namespace, "-o", "wide").stdout.splitlines()

    assert head.split() == ["NAME", "STATUS", "MINMEMBER", "RUNNINGS", "AGE", "QUEUE"]
    assert row.split()[:4] == ["gang", "Inqueue", "3", "2"]
    assert row.split()[-1] == "default"


@pytest.mark.usefixtures("installed")
def test_a_queue_drops_its_status_on_creation_and_gets_its_defaults(control_plane: ControlPlane) -> None:
    path = "/apis/scheduling.volcano.sh/v1beta1/queues"
    name = f"q-{os.urandom(3).hex()}"
    queue = manifest(a_queue(name), spec={"capability": {"cpu": 4, "memory": "1Gi"}}, status={"state": "Open"})

    made = control_plane.request("POST", path, queue)
    control_plane.request("DELETE", f"{path}/{name}")

    assert "status" not in made
    assert (made["spec"]["weight"], made["spec"]["dequeueStrategy"]) == (1, "traverse")


def allowed(plane: ControlPlane, installed: Installed, verb: str, what: str) -> bool:
    """Ask the API server whether the installed scheduler may do this to RESOURCE[.GROUP][/SUBRESOURCE]."""
    kind, _, subresource = what.partition("/")
    resource, _, group = kind.partition(".")
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{installed.namespace}:{installed.service_account}",
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "resourceAttributes": {"verb": verb, "group": group, "resource": resource, "subresource": subresource},
        },
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return bool(plane.request("POST", path, review)["status"]["allowed"])


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("list", "pods"),
        ("watch", "nodes"),
        ("list", "namespaces"),
        ("watch", "poddisruptionbudgets.policy"),
        ("list", "services"),
        ("watch", "replicasets.apps"),
        ("create", "pods/binding"),
        ("patch", "pods/status"),
        ("delete", "pods"),
        ("patch", "podgroups.scheduling.volcano.sh"),
        ("create", "queues.scheduling.volcano.sh"),
        ("create", "events"),
    ],
)
def test_the_scheduler_may_do_what_it_does(
    control_plane: ControlPlane, installed: Installed, verb: str, resource: str
) -> None:
    assert allowed(control_plane, installed, verb, resource)


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("delete", "nodes"),
        ("get", "secrets"),
        ("create", "pods"),
        ("update", "pods"),
        ("update", "podgroups.scheduling.volcano.sh"),
        ("delete", "podgroups.scheduling.volcano.sh"),
        ("update", "queues.scheduling.volcano.sh"),
    ],
)
def test_the_scheduler_may_not_do_what_it_does_not_need(
    control_plane: ControlPlane, installed: Installed, verb: str, resource: str
) -> None:
    assert not allowed(control_plane, installed, verb, resource)


def test_a_token_carries_the_rights_of_its_account(control_plane: ControlPlane, installed: Installed) -> None:
    token = control_plane.token_for(installed.namespace, installed.service_account)
    http = Http(control_plane.server_url, control_plane.ssl_context_without_certificate(), token)
    try:
        listed = http.request("GET", "/api/v1/pods")
        with pytest.raises(ApiFailure) as refused:
            http.request("GET", "/api/v1/secrets")
    finally:
        http.close()

    assert listed["kind"] == "PodList"
    assert refused.value.code == 403


def test_a_kubeconfig_for_an_account_works_and_names_it(control_plane: ControlPlane, installed: Installed) -> None:
    path = control_plane.kubeconfig_for(installed.namespace, installed.service_account)

    who = control_plane.kubectl(
        "--kubeconfig", str(path), "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"
    )

    assert who.stdout == f"system:serviceaccount:{installed.namespace}:{installed.service_account}"
    assert path.stat().st_mode & 0o777 == 0o600
