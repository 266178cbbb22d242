"""The webhook manager uses exactly the rights that manifests/webhooks grants it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from tests.admission.server.managing import FAKE_RULES, bundles, free_port, webhooks
from tests.effects.waiting import until
from volcano_py.admission.contract import Options, Refusal, Request, Verdict, View
from volcano_py.admission.manager import WebhookManager
from volcano_py.admission.options import DEFAULT_NAMESPACE, LEASE, SECRET
from volcano_py.apiserver import ApiServer
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import PODGROUPS, QUEUES, SECRETS
from volcano_py.testing import a_group, a_queue, manifest

RULES = Path(__file__).parents[3] / "manifests" / "webhooks" / "rbac.yaml"


def granted() -> set[tuple[str, str]]:
    """Return verb and resource (NAME[.GROUP]) of every right."""
    roles = [one for one in yaml.safe_load_all(RULES.read_text()) if one["kind"] in ("ClusterRole", "Role")]
    return {
        (verb, f"{name}.{group}" if group else name)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for name in rule["resources"]
        for verb in rule["verbs"]
    }


def used(manager: WebhookManager) -> set[tuple[str, str]]:
    """Return verb and resource of every request that the manager has made."""
    samples = (sample for metric in manager.registry.collect() for sample in metric.samples)
    return {
        (sample.labels["verb"], sample.labels["resource"])
        for sample in samples
        if sample.name == "volcano_py_api_requests_total"
    }


def read_all(request: Request, view: View, _: Options) -> Verdict:
    """Read what rules may read."""
    found = (
        view.queue("default"),
        list(view.queues()),
        list(view.children("default")),
        view.namespace_annotations(request.namespace),
    )
    return Verdict() if found else Verdict((Refusal("nothing"),))


def read_one(request: Request, view: View, _: Options) -> Verdict:
    return Verdict((Refusal("there"),)) if view.queue("default") else Verdict()


async def test_every_right_is_used_and_no_other(server: ApiServer) -> None:
    rules = {**FAKE_RULES, "/podgroups/validate": read_all, "/queues/validate": read_one}
    lease = replace(LEASE, retry_period_s=0.1)
    port = free_port()
    async with ApiClient(Credentials(server.url)) as user, webhooks(server, port, rules, lease=lease) as manager:
        await until(lambda: "" not in bundles(server))
        await user.create(PODGROUPS, manifest(a_group("g")), dict[str, Any], namespace="default")
        below = {**manifest(a_queue("q")), "spec": {"weight": 1, "parent": "other"}}
        await user.create(QUEUES, below, dict[str, Any])
        body: dict[str, Any] = {"data": {"tls.key": "eA=="}}
        await user.patch(SECRETS, SECRET, body, dict[str, Any], namespace=DEFAULT_NAMESPACE)
        await until(lambda: granted() <= used(manager))

        assert used(manager) == granted()
