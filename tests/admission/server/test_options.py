"""Settings that do not go together, and the configuration file of resource groups."""

from pathlib import Path
from typing import Any

import pytest

from volcano_py.admission.contract import ResourceGroup
from volcano_py.admission.options import WebhookOptions, files_of, parse_paths, read_groups
from volcano_py.admission.paths import WEBHOOKS
from volcano_py.runtime.options import OptionError


def test_an_unknown_path_is_named() -> None:
    with pytest.raises(OptionError, match="there is no webhook /jobs/mutilate: write some of /jobs/mutate,"):
        parse_paths("/jobs/mutate,/jobs/mutilate")


def test_paths_are_read_once_each() -> None:
    assert parse_paths(" /jobs/mutate, /pods/mutate,/jobs/mutate,") == ("/jobs/mutate", "/pods/mutate")
    assert parse_paths(",".join(WEBHOOKS)) == tuple(WEBHOOKS)
    with pytest.raises(OptionError, match="no webhook is asked for"):
        parse_paths(" , ")


def test_a_server_that_nobody_can_reach_is_refused() -> None:
    with pytest.raises(OptionError, match="--webhook-service-name and --webhook-namespace, or --webhook-url"):
        WebhookOptions()


@pytest.mark.parametrize("url", ["http://a:1", "https://", "a:8443", "https://a:x", "https://u@a", "https://a?x=1"])
def test_a_wrong_url_is_refused(url: str) -> None:
    with pytest.raises(OptionError, match="write an address such as"):
        WebhookOptions(url=url)


def test_a_certificate_is_for_the_service_and_the_address() -> None:
    options = WebhookOptions(service="hooks", namespace="sys", url="https://10.0.0.1:8443")

    assert options.names == ("hooks.sys.svc", "hooks", "hooks.sys", "10.0.0.1")


def test_a_certificate_needs_three_readable_files(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.touch()

    assert files_of("", "", "") is None
    assert files_of(*[str(there)] * 3) == (there, there, there)
    with pytest.raises(OptionError, match="--tls-private-key-file, --ca-cert-file: a certificate needs all three"):
        files_of(str(there), "", "")
    with pytest.raises(OptionError, match="gone cannot be read: No such file"):
        files_of(str(there), str(there), str(tmp_path / "gone"))


def test_resource_groups_are_read() -> None:
    text = """
    resourceGroups:
    - resourceGroup: gpu
      object: {key: namespace, value: [ml, hpc]}
      schedulerName: volcano
      tolerations: [{key: gpu, operator: Exists}]
      labels: {pool: gpu}
      affinity: '{"nodeAffinity": {}}'
    - resourceGroup: plain
    """
    gpu = ResourceGroup(
        "gpu",
        "namespace",
        ("ml", "hpc"),
        "volcano",
        ({"key": "gpu", "operator": "Exists"},),
        {"pool": "gpu"},
        '{"nodeAffinity": {}}',
    )

    assert read_groups(text) == (gpu, ResourceGroup("plain"))
    assert read_groups("since: 2026-11-31") == ()
    assert read_groups("") == read_groups("# nothing") == read_groups("resourceGroups:") == ()


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a:\n- [", "line 3: this is not YAML"),
        ("a: 1\nb: 0x_", "line 2: '0x_' is not a number"),
        ("a: " + "[" * 900 + "]" * 900, "nested too deeply"),
        ("[1]", "it is not a mapping"),
        ("resourceGroups: x", "resourceGroups is not a list"),
        ("resourceGroups: [x]", r"resourceGroups\[0\] is not a mapping"),
        ("resourceGroups: [{labels: [x]}]", r"resourceGroups\[0\].labels is not a mapping"),
        ("resourceGroups: [{object: {value: x}}]", r"resourceGroups\[0\].object.value is not a list"),
        ("resourceGroups: [{object: {value: [7]}}]", "is not a list of texts"),
        ("resourceGroups: [{tolerations: [x]}]", "is not a list of mappings"),
    ],
)
def test_a_faulty_configuration_says_where(text: str, part: str) -> None:
    with pytest.raises(OptionError, match=part):
        read_groups(text)


def test_where_the_webhooks_are_configured() -> None:
    options: dict[str, Any] = {"service": "volcano-admission-service"}

    assert WebhookOptions(**options).paths == (
        *("/jobs/mutate", "/jobs/validate", "/podgroups/mutate", "/pods/validate", "/pods/mutate"),
        *("/queues/mutate", "/queues/validate"),
    )
    assert WEBHOOKS["/jobs/mutate"].configuration == "volcano-admission-service-jobs-mutate"
