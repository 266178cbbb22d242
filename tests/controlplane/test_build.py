"""Building the control plane's programs, with a `go` that is a shell script."""

from __future__ import annotations

import fcntl
import shutil
import threading
from pathlib import Path

import pytest

from tests.controlplane import binaries, build
from tests.controlplane.binaries import PROGRAMS, find_binaries

ALL = [program.name for program in PROGRAMS]

# Notes every call; `go build -o FILE` and `GOBIN=DIR go install PACKAGE@VERSION` make an executable file.
FAKE_GO = """#!/bin/sh
echo "$@" >> "$GO_CALLS"
case "$1" in
  env) echo go1.26.8; exit 0 ;;
  install) for last; do :; done; last=${last%@*}; out="$GOBIN/${last##*/}" ;;
  build) while [ "$1" != -o ]; do shift; done; out="$2" ;;
esac
echo '#!/bin/sh' > "$out" && chmod +x "$out"
"""
BROKEN_GO = """#!/bin/sh
[ "$1" = env ] && exit 0
i=0; while [ $i -lt 100 ]; do echo "line $i"; i=$((i + 1)); done
echo "undefined: Frobnicate"; exit 2
"""
SLOW_GO = FAKE_GO.replace("echo '#!", '[ "$1" = env ] || sleep 0.2; echo \'#!')
OLD_GO = """#!/bin/sh
echo "go: go.mod requires go >= 1.26.0 (running go 1.19.8; GOTOOLCHAIN=local)" >&2; exit 1
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with only /bin and the test's own programs, and an empty cache."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for needed in ("sleep", "chmod"):
        found = shutil.which(needed)
        assert found
        (folder / needed).symlink_to(found)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GO_CALLS", str(tmp_path / "calls"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return folder


def put(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(script)
    path.chmod(0o755)


def calls(tmp_path: Path) -> list[str]:
    log = tmp_path / "calls"
    return [line for line in log.read_text().splitlines() if not line.startswith("env")] if log.exists() else []


def test_everything_is_built_once(tools: Path, tmp_path: Path) -> None:
    put(tools, "go", FAKE_GO)
    said: list[str] = []

    first = build.build_missing(say=said.append)
    second = build.build_missing(say=said.append)

    assert list(first.paths) == ALL
    assert second == first
    assert len(calls(tmp_path)) == len(ALL)
    assert any("kube-apiserver: 0 s" in line for line in said)


def test_only_what_is_missing_is_built(tools: Path, tmp_path: Path) -> None:
    put(tools, "go", FAKE_GO)
    build.build_missing(say=lambda line: None)
    (binaries.cache_folder() / "etcd").unlink()

    build.build_missing(say=lambda line: None)

    assert [call.split()[-1] for call in calls(tmp_path)].count("go.etcd.io/etcd/server/v3") == 2
    assert len(calls(tmp_path)) == len(ALL) + 1


def test_kubernetes_gets_its_version_and_kwok_comes_from_its_own_release(tools: Path, tmp_path: Path) -> None:
    put(tools, "go", FAKE_GO)
    build.build_missing(say=lambda line: None)

    by_package = {call.split()[-1]: call for call in calls(tmp_path)}

    assert "version.gitVersion=v1.36.3" in by_package["k8s.io/kubernetes/cmd/kube-apiserver"]
    assert by_package["sigs.k8s.io/kwok/cmd/kwok@v0.8.0"].startswith("install")


@pytest.mark.usefixtures("tools")
def test_a_new_version_of_helm_builds_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    plane, helm = binaries.cache_folder(), binaries.cache_folder(binaries.HELM)

    monkeypatch.setattr(binaries, "HELM_VERSION", "v99.0.0")

    assert binaries.cache_folder() == plane
    assert binaries.cache_folder(binaries.HELM) != helm


def test_helm_gets_its_version(tools: Path, tmp_path: Path) -> None:
    put(tools, "go", FAKE_GO)
    build.build_missing([binaries.HELM], say=lambda line: None)

    (call,) = calls(tmp_path)

    assert call.startswith("install")
    assert f"version.version={binaries.HELM_VERSION}" in call
    assert find_binaries()["helm"].parent == binaries.cache_folder(binaries.HELM)


def test_a_failed_build_shows_the_end_of_what_go_wrote_and_leaves_nothing(tools: Path) -> None:
    put(tools, "go", BROKEN_GO)

    with pytest.raises(
        build.BuildFailed, match=r"\[1/7\] kube-apiserver(.|\n)*line 99\nundefined: Frobnicate"
    ) as failed:
        build.build_missing(say=lambda line: None)

    assert "line 10\n" not in str(failed.value)
    assert [path.name for path in binaries.cache_folder().iterdir()] == [".lock"]


def test_a_long_build_says_that_it_is_alive(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tools, "go", SLOW_GO)
    monkeypatch.setattr(build, "HEARTBEAT_S", 0.05)
    said: list[str] = []

    build.build_missing([binaries.KWOK], said.append)

    assert any("still building" in line for line in said)


def test_a_second_build_waits_for_the_first(tools: Path) -> None:
    put(tools, "go", FAKE_GO)
    folder = binaries.cache_folder()
    folder.mkdir(parents=True)
    waiting = threading.Event()
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        waiting.set()

    second = threading.Thread(target=build.build_missing, kwargs={"say": say})
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second.start()
        assert waiting.wait(10)
        assert "waiting for it" in said[0]
        assert not find_binaries().paths
    second.join(10)

    assert list(find_binaries().paths) == ALL


@pytest.mark.usefixtures("tools")
def test_without_go_one_line_says_what_to_install(capsys: pytest.CaptureFixture[str]) -> None:
    assert build.main() == 1

    (line,) = capsys.readouterr().err.splitlines()
    assert "install Go 1.26.0 or newer" in line
    assert "KUBEBUILDER_ASSETS" in line
    assert "KUBECONFIG" in line


def test_a_go_that_is_too_old_is_refused_in_one_line(tools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tools, "go", OLD_GO)

    assert build.main() == 1

    (line,) = capsys.readouterr().err.splitlines()
    assert "requires go >= 1.26.0" in line
    assert "install Go" in line


def test_kubebuilder_assets_leave_only_the_rest_to_be_built(
    tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tools, "go", FAKE_GO)
    assets = tmp_path / "assets"
    assets.mkdir()
    for name in ("kube-apiserver", "etcd", "kubectl"):
        put(assets, name, "#!/bin/sh\n")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))

    assert build.main() == 0

    assert find_binaries()["etcd"] == assets / "etcd"
    assert [call.split()[-1].rpartition("/")[2] for call in calls(tmp_path)] == [
        "kube-controller-manager",
        "kwok@v0.8.0",
        f"helm@{binaries.HELM_VERSION}",
    ]


@pytest.mark.usefixtures("tools")
def test_an_assets_folder_without_the_programs_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))

    assert build.main() == 1

    assert "does not hold kube-apiserver, etcd, kubectl" in capsys.readouterr().err


@pytest.mark.usefixtures("tools")
def test_a_given_cluster_needs_no_build(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("KUBECONFIG", "/somewhere")

    assert build.main() == 0

    assert "nothing is built" in capsys.readouterr().err


@pytest.mark.usefixtures("tools")
def test_another_module_file_means_another_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = binaries.cache_folder()
    for name in ("go.mod", "go.sum"):
        shutil.copy(binaries.MODULE / name, tmp_path)
    with (tmp_path / "go.sum").open("a") as file:
        file.write("one more\n")
    monkeypatch.setattr(binaries, "MODULE", tmp_path)

    assert binaries.cache_folder() != before


@pytest.mark.usefixtures("tools")
def test_a_missing_program_is_named_with_a_remedy() -> None:
    with pytest.raises(binaries.MissingPrograms, match=r"etcd; run `python -m tests\.controlplane\.build`"):
        find_binaries().require(["etcd"])
