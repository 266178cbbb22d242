"""Finds the server as kubectl does, and shows the identity that the kubeconfig names."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from volcano_py.client.access import Access, find_access
from volcano_py.client.problem import Problem


def write(path: Path, *, server: str = "http://one", name: str = "a", current: str = "a", **user: Any) -> Path:
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": current,
                "clusters": [{"name": name, "cluster": {"server": server}}],
                "users": [{"name": name, "user": user}],
                "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            }
        )
    )
    return path


def found(path: Path | str = "", environ: dict[str, str] | None = None, **how: Any) -> Access:
    return find_access(kubeconfig=str(path), environ=environ or {}, **how)


def test_the_kubeconfig_of_the_flag_wins_over_that_of_the_environment(tmp_path: Path) -> None:
    flag = write(tmp_path / "flag", server="http://flag")
    variable = write(tmp_path / "variable", server="http://variable")

    assert found(flag, {"KUBECONFIG": str(variable)}).server == "http://flag"
    assert found("", {"KUBECONFIG": str(variable)}).server == "http://variable"


def test_the_environment_may_name_several_files_and_the_first_wins(tmp_path: Path) -> None:
    first = write(tmp_path / "first", server="http://first", name="a", current="b")
    second = write(tmp_path / "second", server="http://second", name="b", current="a")
    names = {"KUBECONFIG": f"{tmp_path}/missing:{first}:{second}"}

    assert found("", names).server == "http://second"  # the first file's current-context is b
    assert found("", names, context="a").server == "http://first"


def test_without_flag_and_variable_the_home_folder_counts(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write(tmp_path / ".kube" / "config", server="http://home")

    assert found("", {"HOME": str(tmp_path)}).server == "http://home"
    with pytest.raises(Problem, match="no Kubernetes cluster is configured"):
        found("", {"HOME": str(tmp_path / "nowhere")})


def test_a_bare_address_over_http_needs_no_kubeconfig(tmp_path: Path) -> None:
    assert found("", {"HOME": str(tmp_path)}, server="http://there:8001/").server == "http://there:8001"
    assert found("", {"HOME": str(tmp_path)}, server="there:8001").server == "http://there:8001"


def test_the_flag_for_the_server_replaces_only_the_address(tmp_path: Path) -> None:
    access = found(write(tmp_path / "k", token="secret"), server="http://other")

    assert (access.server, access.authorization) == ("http://other", "Bearer secret")


def test_tokens_files_and_passwords_become_headers(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    basic = base64.b64encode(b"me:word").decode()

    assert found(write(tmp_path / "k", token="t")).authorization == "Bearer t"
    assert found(write(tmp_path / "k", tokenFile="token", token="t")).authorization == "Bearer from-file"
    assert found(write(tmp_path / "k", username="me", password="word")).authorization == f"Basic {basic}"
    assert found(write(tmp_path / "k")).authorization == ""


def test_a_pod_uses_its_account(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443", "HOME": str(tmp_path)}
    (tmp_path / "token").write_text("of-the-pod")

    with pytest.raises(Problem, match="this looks like a pod"):
        found("", environ, service_account=tmp_path)
    kubeconfig = write(tmp_path / "k", server="http://named")
    assert found("", {**environ, "KUBECONFIG": str(kubeconfig)}).server == "http://named"


def plugin(folder: Path, text: str) -> dict[str, Any]:
    path = folder / "plugin"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path), "interactiveMode": "Never"}


def test_an_exec_plugin_gives_the_token(tmp_path: Path) -> None:
    answer = (
        '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"of-the-plugin"}}'
    )

    access = found(write(tmp_path / "k", exec=plugin(tmp_path, f"echo '{answer}'")), {"PATH": "/bin:/usr/bin"})

    assert access.authorization == "Bearer of-the-plugin"
    assert "of-the-plugin" not in repr(access)


def test_an_exec_plugin_that_fails_is_named(tmp_path: Path) -> None:
    kubeconfig = write(tmp_path / "k", exec=plugin(tmp_path, "echo no login >&2; exit 3"))

    with pytest.raises(Problem, match="ended with exit code 3: no login"):
        found(kubeconfig, {"PATH": "/bin:/usr/bin"})


def test_certificates_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    document = yaml.safe_load(write(tmp_path / "k", server="https://one").read_text())
    document["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(b"no certificate").decode()
    (tmp_path / "k").write_text(yaml.safe_dump(document))

    with pytest.raises(Problem, match=r"the certificates of kubeconfig .* cannot be used"):
        found(tmp_path / "k")
    document["clusters"][0]["cluster"] = {"server": "https://one", "certificate-authority": "missing.crt"}
    (tmp_path / "k").write_text(yaml.safe_dump(document))
    with pytest.raises(Problem, match=r"missing\.crt"):
        found(tmp_path / "k")


@pytest.mark.parametrize("section", ["user", "cluster", "context"])
def test_a_section_that_is_no_map_is_named(tmp_path: Path, section: str) -> None:
    document = yaml.safe_load(write(tmp_path / "k").read_text())
    document[f"{section}s"][0][section] = "text"
    (tmp_path / "k").write_text(yaml.safe_dump(document))

    with pytest.raises(Problem, match=f"has a {section} '.*' that is no map; correct {section}s"):
        found(tmp_path / "k")


def test_a_server_that_is_no_address_is_named(tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"has the server 'http://one:abc', which is not the address of an API server"):
        found(write(tmp_path / "k", server="http://one:abc"))


def test_a_proxy_comes_from_the_environment(tmp_path: Path) -> None:
    environ = {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": "one.internal"}

    assert found(write(tmp_path / "k", server="https://two"), environ).proxy == "http://proxy:3128"
    assert found(write(tmp_path / "k", server="https://one.internal"), environ).proxy == ""


def test_a_user_without_a_home_needs_none_with_a_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.path.expanduser", str)  # what it returns for a user without an entry in the password file
    monkeypatch.delenv("HOME", raising=False)

    assert found(write(tmp_path / "k", server="http://flag")).server == "http://flag"
    with pytest.raises(Problem, match=r"no Kubernetes cluster is configured: .* ~/.kube/config does not exist"):
        found()
    with pytest.raises(Problem, match="kubeconfig ~nobody/config does not exist"):
        found("~nobody/config")


@pytest.mark.parametrize(
    ("insecure", "server", "address"),
    [
        (False, "", "http://api:6443"),
        (True, "", "https://api:6443"),  # a token must not be sent over HTTP then
        (False, "other:1", "http://other:1"),
        (True, "other:1", "https://other:1"),
        (True, "http://other:1", "http://other:1"),
    ],
)
def test_an_address_without_a_scheme_is_https_if_its_context_is_for_tls(
    tmp_path: Path, insecure: bool, server: str, address: str
) -> None:
    path = write(tmp_path / "k", server="api:6443", token="t")
    document = yaml.safe_load(path.read_text())
    document["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = insecure
    path.write_text(yaml.safe_dump(document))

    assert found(path, server=server).server == address


@pytest.mark.parametrize("field", ["as", "as-uid", "as-groups"])
def test_a_user_that_acts_as_another_one_is_refused(tmp_path: Path, field: str) -> None:
    path = write(tmp_path / "k", token="t", **{field: ["viewer"]})
    with pytest.raises(Problem, match=f"its user acts as another one \\(`{field}`\\), which is not supported"):
        found(path)


def test_a_user_that_is_missing_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "k", token="t")
    path.write_text(path.read_text().replace("user: a", "user: gone"))
    with pytest.raises(Problem, match=r"does not have the user 'gone' of context 'a'; .* get-users"):
        found(path)


def test_data_that_are_not_base64_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "k", **{"client-certificate-data": "!!!", "client-key-data": "!!!"})
    with pytest.raises(Problem, match=r"cannot be used: .*base64"):
        found(path)
