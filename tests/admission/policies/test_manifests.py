"""manifests/policies without a cluster: each policy is installed, has a binding, and asks what the webhooks ask."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.admission.policies.asks import KINDS
from volcano_py.admission.paths import WEBHOOKS, Webhook
from volcano_py.admission.policies import ACTIONS, EVENTS
from volcano_py.api.plugin_arguments import JOB_PLUGINS

FOLDER = Path(__file__).resolve().parents[3] / "manifests" / "policies"
QUEUES = FOLDER / "queues"
WEBHOOK_FILES = (
    FOLDER.parent / "webhooks" / "configurations.yaml",
    FOLDER.parent / "webhooks/pods/configurations.yaml",
)
REGISTERED = "admissionregistration.k8s.io/v1"
NO_MUTATION = {"/pods/mutate"}
"""Paths of webhooks without a policy: resource groups come from a configuration file."""
SHORT = {"jobs": "job", "queues": "queue", "podgroups": "podgroup", "pods": "pod", "jobflows": "jobflow"}
NAMES = {**SHORT, "hypernodes": "hypernode", "cronjobs": "cronjob"}


def documents(folder: Path = FOLDER) -> Iterator[dict[str, Any]]:
    """Yield every object of the files that kustomize installs."""
    for name in yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]:
        yield from yaml.safe_load_all((folder / name).read_text())


def named(kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in documents() if one["kind"] == kind}


def webhooks() -> dict[str, dict[str, Any]]:
    """Return the webhooks of manifests/webhooks by path, without those that only take note of a status."""
    found = [one for file in WEBHOOK_FILES for one in yaml.safe_load_all(file.read_text())]
    hooks = [hook for one in found for hook in one["webhooks"] if "/" not in hook["rules"][0]["resources"][0]]
    return {hook["clientConfig"]["service"]["path"]: hook for hook in hooks}


def policy_of(webhook: Webhook) -> dict[str, Any]:
    kind = NAMES[webhook.plural]
    if webhook.mutates:
        return named("MutatingAdmissionPolicy")[f"volcano-{kind}-mutation-policy"]
    return named("ValidatingAdmissionPolicy")[f"{kind}-validation-policy"]


@pytest.mark.parametrize("folder", [FOLDER, QUEUES])
def test_every_file_is_installed(folder: Path) -> None:
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]

    assert sorted(listed) == sorted(file.name for file in folder.glob("*.yaml") if file.name != "kustomization.yaml")
    assert {one["apiVersion"] for one in documents(folder)} == {REGISTERED}


def test_policies_that_know_queues_ask_about_all_queues_and_let_work_pass_without_any() -> None:
    policies, bindings = list(documents(QUEUES))[::2], list(documents(QUEUES))[1::2]

    for policy, binding in zip(policies, bindings, strict=True):
        spec = policy["spec"]
        plural = spec["matchConstraints"]["resourceRules"][0]["resources"][0]
        asked = WEBHOOKS[f"/{plural}/validate"]
        rules = [{**webhooks()[asked.path]["rules"][0], "operations": ["CREATE"]}] if plural == "jobs" else None
        assert spec["matchConstraints"]["resourceRules"] == (rules or webhooks()[asked.path]["rules"])
        assert (spec["failurePolicy"], spec["paramKind"]["kind"]) == ("Fail", "Queue")
        assert binding["spec"]["policyName"] == policy["metadata"]["name"]
        assert binding["metadata"]["name"] == f"{policy['metadata']['name']}-binding"
        assert binding["spec"]["paramRef"] == {"selector": {}, "parameterNotFoundAction": "Allow"}
        assert binding["spec"]["validationActions"] == ["Deny"]
    assert len(policies) == 3


@pytest.mark.parametrize("kind", ["ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"])
def test_every_policy_has_a_binding_and_fails_closed(kind: str) -> None:
    policies, bindings = named(kind), named(f"{kind}Binding")

    assert policies
    assert {f"{name}-binding": name for name in policies} == {
        name: binding["spec"]["policyName"] for name, binding in bindings.items()
    }
    assert {policy["spec"]["failurePolicy"] for policy in policies.values()} == {"Fail"}
    if kind.startswith("V"):
        assert all(binding["spec"]["validationActions"] == ["Deny"] for binding in bindings.values())


@pytest.mark.parametrize("path", sorted(WEBHOOKS.keys() - NO_MUTATION))
def test_every_policy_asks_what_its_webhook_asks(path: str) -> None:
    webhook, hook = WEBHOOKS[path], webhooks()[path]
    matched = policy_of(webhook)["spec"]["matchConstraints"]

    assert matched["resourceRules"] == hook["rules"]
    assert matched["resourceRules"][0]["resources"] == [webhook.plural]
    assert tuple(matched["resourceRules"][0]["operations"]) == webhook.operations
    assert matched.get("namespaceSelector") == hook.get("namespaceSelector")
    assert matched["matchPolicy"] == "Equivalent"


def test_there_are_no_other_policies() -> None:
    expected = {policy_of(WEBHOOKS[path])["metadata"]["name"] for path in WEBHOOKS.keys() - NO_MUTATION}

    assert {*named("ValidatingAdmissionPolicy"), *named("MutatingAdmissionPolicy")} == expected
    assert set(NAMES) == set(KINDS)


def test_every_variable_is_used_and_stands_before_its_use() -> None:
    for name, policy in {**named("ValidatingAdmissionPolicy"), **named("MutatingAdmissionPolicy")}.items():
        spec = policy["spec"]
        variables = spec.get("variables", [])
        seen: set[str] = set()
        used: set[str] = set()
        for variable in variables:
            needed = set(re.findall(r"variables\.(\w+)", variable["expression"]))
            assert needed <= seen, f"{name}: {variable['name']} uses {needed - seen} before they stand there"
            used |= needed
            seen.add(variable["name"])
        rest = yaml.safe_dump([spec.get("validations"), spec.get("mutations")], width=10_000)
        used |= set(re.findall(r"variables\.(\w+)", rest))
        assert used == seen, f"{name}: {seen ^ used}"


def test_closed_sets_are_those_of_the_rules() -> None:
    variables = {one["name"]: one["expression"] for one in policy_of(WEBHOOKS["/jobs/validate"])["spec"]["variables"]}

    assert re.findall(r"'([^']+)'", variables["validEvents"]) == list(EVENTS)
    assert re.findall(r"'([^']+)'", variables["validActions"]) == list(ACTIONS)
    assert set(re.findall(r"'([^']+)'", variables["strangePlugins"])) == set(JOB_PLUGINS)
