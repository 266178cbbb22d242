"""Checks webhook configurations and admission policies: what somebody has changed, and what nobody would serve here."""

from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import urlsplit

from volcano_py.admission.paths import CONFIGURATION_PREFIX, Webhook
from volcano_py.admission.paths import WEBHOOKS as PATHS
from volcano_py.api import keys
from volcano_py.migration.findings import Finding, Group, Obj, Ref, mapping, ref_of, sequence, shortened, text
from volcano_py.migration.helm_defaults import ADMISSION_PATHS
from volcano_py.migration.programs import WEBHOOKS, Workload, releases_of

_CARRY: Final = "patch our webhook configuration of the same name in the same way"
_FIXED: Final = (
    *(("failurePolicy", "Fail"), ("matchPolicy", "Equivalent"), ("timeoutSeconds", 10)),
    ("reinvocationPolicy", "Never"),
)
_VERSIONS: Final = {"": "v1", keys.SCHEDULING_GROUP: "v1beta1"}
"""By group; all others have v1alpha1."""
_EVERYWHERE: Final = ("/hypernodes/validate", "/queues/mutate", "/queues/validate")
"""About objects without a namespace."""
_NAMESPACE_LABEL: Final = "kubernetes.io/metadata.name"
_OURS: Final = "validatequeuestatus.volcano.sh"
"""A webhook that Volcano does not have; it says that our manifests are applied already."""
_POLICIES: Final = frozenset(
    {f"{kind}-validation-policy" for kind in ("job", "queue", "podgroup", "pod", "hypernode", "jobflow", "cronjob")}
    | {f"volcano-{kind}-mutation-policy" for kind in ("job", "queue", "podgroup", "pod")}
)


def judge_webhooks(configurations: list[Obj], workloads: Sequence[Workload]) -> Iterator[tuple[Ref, list[Finding]]]:
    """Yield the webhook configurations of Volcano with what differs, and what is not called at present."""
    managers = [one for one in workloads if one.program == WEBHOOKS]
    namespaces = {one.ref.namespace for one in managers} or {"volcano-system"}
    services = {(space, f"{release}-admission-service") for space in namespaces for release in releases_of(managers)}
    seen = set()
    for configuration in configurations:
        webhooks = [one for one in sequence(configuration, "webhooks") if isinstance(one, dict)]
        if not _is_volcanos(configuration, webhooks):
            continue
        ref = ref_of(configuration)
        seen.add(ref.name)
        yield ref, [found for webhook in webhooks for found in _judge(ref, webhook, namespaces, services)]
    yield from _absent(managers, seen)


def _is_volcanos(configuration: Obj, webhooks: list[Obj]) -> bool:
    name = text(configuration, "metadata", "name")
    return name.startswith(CONFIGURATION_PREFIX) or any(
        text(one, "name").endswith(".volcano.sh") and _path(one) is not None for one in webhooks
    )


def _path(webhook: Obj) -> str | None:
    client = mapping(webhook, "clientConfig")
    if text(client, "url"):
        return urlsplit(text(client, "url")).path
    return text(client, "service", "path") or None


def _judge(ref: Ref, webhook: Obj, namespaces: set[str], services: set[tuple[str, str]]) -> Iterator[Finding]:
    name, path = text(webhook, "name"), _path(webhook) or "/"
    if name == _OURS:
        return
    known = PATHS.get(path)
    if known is None:
        what = f"it calls {path}, which our webhook manager does not serve"
        yield Finding(
            Group.MISSING, "webhook-missing", ref, what, "delete this configuration, or its objects are refused"
        )
        return
    if ref.name != known.configuration:
        what = f"it calls {path}, and our manifests call it in {known.configuration}: it would be called twice"
        yield Finding(Group.DIFFERS, "webhook-name", ref, what, "delete this configuration after the switch")
    for field, expected in _FIXED:
        found = webhook.get(field, expected)
        if found != expected:
            what = f"{name}: {field} is {found}, ours is {expected}"
            yield Finding(Group.REPLACED, "webhook-changed", ref, what, _CARRY)
    if text(mapping(webhook, "clientConfig"), "url"):
        url = text(mapping(webhook, "clientConfig"), "url")
        what = f"{name}: API servers call the address {url}; our manifests name the Service volcano-admission-service"
        advice = "install ours with manifests/overlays/webhook-url, and put in this address"
        yield Finding(Group.REPLACED, "webhook-url", ref, what, advice)
    yield from _service(ref, name, webhook, services)
    yield from _rules(ref, name, webhook, known)
    yield from _selectors(ref, name, webhook, namespaces)
    if path not in _EVERYWHERE:
        yield from _lacking(ref, name, webhook, namespaces)


def _service(ref: Ref, name: str, webhook: Obj, services: set[tuple[str, str]]) -> Iterator[Finding]:
    service = mapping(webhook, "clientConfig", "service")
    address = f"{text(service, 'namespace')}/{text(service, 'name')}:{service.get('port', 443)}"
    if service and not any(address == f"{namespace}/{name}:443" for namespace, name in services):
        what = f"{name}: API servers call the Service {address}, which is none of Volcano's chart"
        yield Finding(Group.REPLACED, "webhook-changed", ref, what, "find out what stands between them, and keep it")


def _rules(ref: Ref, name: str, webhook: Obj, known: Webhook) -> Iterator[Finding]:
    found = {
        (str(group), str(resource)): {str(word) for word in sequence(rule, "operations")}
        for rule in sequence(webhook, "rules")
        for group in sequence(rule, "apiGroups")
        for resource in sequence(rule, "resources")
    }
    expected = {(known.group, known.plural): set(known.operations)}
    if found != expected:
        what = f"{name}: its rules are {_shown(found)}; ours are {_shown(expected)}"
        yield Finding(Group.REPLACED, "webhook-changed", ref, what, _CARRY)
    usual = {"scope": "*", "apiVersions": [_VERSIONS.get(known.group, "v1alpha1")]}
    for rule in sequence(webhook, "rules"):
        for field, value in usual.items():
            given = rule.get(field, value) if isinstance(rule, dict) else value
            if given != value:
                what = f"{name}: {field} of its rule is {shortened(given)}, ours is {shortened(value)}"
                yield Finding(Group.REPLACED, "webhook-changed", ref, what, _CARRY)


def _shown(rules: dict[tuple[str, str], set[str]]) -> str:
    if not rules:
        return "empty"
    return "; ".join(
        f"{resource}{f'.{group}' if group else ''} {','.join(sorted(operations))}"
        for (group, resource), operations in sorted(rules.items())
    )


def _selectors(ref: Ref, name: str, webhook: Obj, namespaces: set[str]) -> Iterator[Finding]:
    expressions = list(sequence(webhook, "namespaceSelector", "matchExpressions"))
    labels = mapping(webhook, "namespaceSelector", "matchLabels")
    others = [one for one in expressions if not _leaves_out(one, namespaces)]
    if others or labels:
        what = f"{name}: it selects namespaces by {shortened(_words(others, labels), 80)}"
        yield Finding(Group.REPLACED, "webhook-changed", ref, what, _CARRY)
    for field in ("objectSelector", "matchConditions"):
        found = webhook.get(field)
        if found and found != {"matchLabels": {}}:
            yield Finding(Group.REPLACED, "webhook-changed", ref, f"{name}: it has a {field}, ours has none", _CARRY)


def _lacking(ref: Ref, name: str, webhook: Obj, namespaces: set[str]) -> Iterator[Finding]:
    """Yield which namespaces the webhook asks about, although the chart and our manifests leave them out."""
    left_out = {
        str(value)
        for one in sequence(webhook, "namespaceSelector", "matchExpressions")
        if text(one, "key") == _NAMESPACE_LABEL and text(one, "operator") == "NotIn"
        for value in sequence(one, "values")
    }
    chosen = mapping(webhook, "namespaceSelector", "matchLabels") or any(
        text(one, "operator") == "In" for one in sequence(webhook, "namespaceSelector", "matchExpressions")
    )
    # If several releases run, their configurations are those of one of them.
    lacking = sorted({"kube-system", *(() if namespaces & left_out else namespaces)} - left_out)
    if lacking and not chosen:
        what = f"{name}: it does not leave out {', '.join(lacking)}; ours does"
        yield Finding(Group.REPLACED, "webhook-changed", ref, what, _CARRY)


def _leaves_out(expression: Obj, namespaces: set[str]) -> bool:
    """Say whether an expression leaves out only the namespaces that Volcano's chart leaves out."""
    values = {str(value) for value in sequence(expression, "values")}
    return (
        text(expression, "key") == _NAMESPACE_LABEL
        and text(expression, "operator") == "NotIn"
        and values <= namespaces | {"kube-system"}
    )


def _words(expressions: list[Obj], labels: Obj) -> str:
    said = [
        f"{text(one, 'key')} {text(one, 'operator')} {','.join(map(str, sequence(one, 'values')))}".rstrip()
        for one in expressions
    ]
    return "; ".join([*said, *(f"{key}={value}" for key, value in labels.items())])


def _absent(managers: Sequence[Workload], seen: set[str]) -> Iterator[tuple[Ref, list[Finding]]]:
    """Yield what API servers do not ask at present, and would ask with our manifests."""
    ref = Ref("WebhookConfigurations", f"{CONFIGURATION_PREFIX}-*")
    if not managers and not seen:
        what = "Volcano's webhooks are not installed; ours would check and change what users write"
        yield ref, [Finding(Group.DIFFERS, "webhooks-absent", ref, what, "leave manifests/webhooks out to keep it so")]
        return
    for manager in managers:
        lists = manager.values("enabled-admission")
        paths = [path.strip() for path in lists[-1].split(",")] if lists else list(ADMISSION_PATHS)
        for path in paths:
            webhook = PATHS.get(path)
            if path in ADMISSION_PATHS and webhook is not None and webhook.configuration not in seen:
                kind = "MutatingWebhookConfiguration" if webhook.mutates else "ValidatingWebhookConfiguration"
                own = Ref(kind, webhook.configuration)
                what = f"it is missing, so API servers do not call {path} at present; with our manifests they do"
                yield own, [Finding(Group.DIFFERS, "webhook-absent", own, what, "leave it out of ours to keep it so")]


def judge_namespaces(namespaces: list[Obj], configurations: list[Obj]) -> Iterator[tuple[Ref, list[Finding]]]:
    """Yield namespaces with a queue of their own that nothing reads at present; our manifests have a webhook for it."""
    if any(text(one, "metadata", "name") == PATHS["/podgroups/mutate"].configuration for one in configurations):
        return
    for namespace in namespaces:
        queue = text(namespace, "metadata", "annotations", keys.QUEUE_NAME)
        if queue:
            ref = ref_of(namespace, "Namespace")
            what = f"its annotation names the queue {queue}, which nothing reads at present; here its PodGroups get it"
            advice = "remove the annotation, or leave the webhook configuration for /podgroups/mutate out"
            yield ref, [Finding(Group.DIFFERS, "namespace-queue", ref, what, advice)]


def judge_policies(policies: list[Obj]) -> Iterator[tuple[Ref, list[Finding]]]:
    """Yield the admission policies of Volcano's chart."""
    for policy in policies:
        ref = ref_of(policy)
        if ref.name not in _POLICIES:
            continue
        what = "this admission policy is Volcano's; ours of the same name is in manifests/policies"
        advice = "apply manifests/policies too if it shall follow ours; docs/parity.md says what policies cannot check"
        yield ref, [Finding(Group.REPLACED, "policy", ref, what, advice)]
