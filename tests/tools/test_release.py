"""The tool that makes a release, on a small project of its own."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from tests.packaging.pages import REPOSITORY
from tools.release.__main__ import check, files_of_a_release, main, release
from tools.release.archives import checksums, repack
from tools.release.artefacts import Workshop
from tools.release.tree import NotReleasable, changes, export
from tools.release.versions import disagreements, places


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A git repository with the files that say versions."""
    root = tmp_path / "project"
    (root / "manifests").mkdir(parents=True)
    for name in (
        *("pyproject.toml", "volcano_py/__init__.py", "chart/Chart.yaml", "Dockerfile"),
        *("README.md", "docs/install.md", "docs/migration.md"),
    ):
        (root / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / name, root / name)
    (root / "manifests" / "one.yaml").write_text("      image: volcano-py:0.1.0\n")
    (root / "chart" / "manifests").symlink_to("../manifests")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"]):
        author = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *author, *command], cwd=root, check=True, capture_output=True)
    return root


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A helm and a kubectl on PATH."""
    for name in ("helm", "kubectl"):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")


def test_every_place_of_this_project_says_the_same_version() -> None:
    assert disagreements(REPOSITORY) == []
    named = {name for name, _ in places(REPOSITORY)}
    assert {"chart/Chart.yaml", "Dockerfile", "pyproject.toml", "manifests/deployment/scheduler.yaml"} <= named


def test_a_place_with_another_version_is_named(project: Path) -> None:
    (project / "manifests" / "one.yaml").write_text("      image: volcano-py:0.2.0\n")

    assert disagreements(project) == [
        "manifests/one.yaml says 0.2.0, and pyproject.toml says 0.1.0: write the same version in both"
    ]


def test_commands_of_the_guides_name_the_version(project: Path) -> None:
    guide = project / "docs" / "install.md"
    guide.write_text(guide.read_text().replace("newTag: 0.1.0", "newTag: 0.0.9"))

    assert {one.partition(",")[0] for one in disagreements(project)} == {"docs/install.md says 0.0.9"}


def test_a_place_that_lost_its_version_is_an_error(project: Path) -> None:
    (project / "Dockerfile").write_text("FROM scratch\n")

    with pytest.raises(ValueError, match="Dockerfile does not say a version"):
        disagreements(project)


@pytest.mark.usefixtures("programs")
def test_changes_that_are_not_committed_are_refused(project: Path) -> None:
    check(project, image=False, allow_dirty=False)
    (project / "README.md").write_text("docker build -t volcano-py:0.1.0\n")
    (project / "new").write_text("")

    with pytest.raises(NotReleasable, match=r"differ from the last commit: README\.md, new\. Commit them, or release"):
        check(project, image=False, allow_dirty=False)
    check(project, image=False, allow_dirty=True)


@pytest.mark.usefixtures("programs")
def test_the_image_needs_root_and_buildah(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    with pytest.raises(NotReleasable, match=r'needs root and buildah .*make release RELEASE="--without-image"'):
        check(project, image=True, allow_dirty=False)


def test_a_refused_release_says_why_and_makes_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    git = shutil.which("git")
    assert git
    (project / "only-git").mkdir()
    (project / "only-git" / "git").symlink_to(git)
    monkeypatch.setenv("PATH", str(project / "only-git"))

    assert main(["--without-image", "--allow-dirty"], project) == 1

    assert "release: helm is missing" in capsys.readouterr().err
    assert not (project / "dist").exists()


def test_only_files_that_git_knows_are_released(project: Path, tmp_path: Path) -> None:
    (project / "secret").write_text("")
    (project / "README.md").write_text("changed")

    export(project, tmp_path / "copy", 1_000_000_000)

    copied = {str(file.relative_to(tmp_path / "copy")) for file in (tmp_path / "copy").rglob("*") if not file.is_dir()}
    assert "secret" in changes(project)
    assert "secret" not in copied
    assert (tmp_path / "copy" / "README.md").read_text() == "changed"
    assert (tmp_path / "copy" / "chart" / "manifests").readlink() == Path("../manifests")
    assert os.access(tmp_path / "copy" / "run.sh", os.X_OK)
    assert (tmp_path / "copy" / "run.sh").stat().st_mtime == 1_000_000_000


def packed(path: Path, names: list[str], mtime: float, mode: int) -> bytes:
    """Make an archive, make it independent of its making, and return its bytes."""
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode, member.uname = len(name), mtime, mode, f"user-{mtime}"
            archive.addfile(member, io.BytesIO(name.encode()))
    repack(path, 1_000_000_000)
    return path.read_bytes()


def test_an_archive_does_not_depend_on_when_and_by_whom_it_was_made(tmp_path: Path) -> None:
    one = packed(tmp_path / "one.tgz", ["a", "b"], time.time(), 0o600)
    other = packed(tmp_path / "other.tgz", ["b", "a"], 5.5, 0o664)
    changed = packed(tmp_path / "changed.tgz", ["a", "c"], 5.5, 0o664)

    assert one == other
    assert one != changed
    with tarfile.open(tmp_path / "one.tgz") as archive:
        assert [(member.name, member.mode) for member in archive] == [("a", 0o644), ("b", 0o644)]
        file = archive.extractfile("b")
        assert file is not None
        assert file.read() == b"b"


def test_sha256sum_reads_the_checksums(tmp_path: Path) -> None:
    files = [tmp_path / "b", tmp_path / "a"]
    for file in files:
        file.write_text(file.name)
    (tmp_path / "SHA256SUMS").write_text(checksums(files))

    ran = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert ran.stdout == "a: OK\nb: OK\n"


def test_a_folder_with_other_files_is_not_emptied(tmp_path: Path) -> None:
    dist = tmp_path / "dist"
    assert files_of_a_release(dist) == []
    dist.mkdir()
    (dist / "old.whl").write_text("")
    (dist / "SHA256SUMS").write_text("0  old.whl\n")
    assert sorted(files_of_a_release(dist)) == [dist / "SHA256SUMS", dist / "old.whl"]

    (dist / "thesis.tex").write_text("")
    with pytest.raises(NotReleasable, match=r"holds files that are not of a release, such as thesis\.tex"):
        files_of_a_release(dist)


def test_a_release_that_fails_half_way_leaves_the_former_one_and_the_next_one_replaces_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dist = project / "dist"
    dist.mkdir()
    (dist / "old.whl").write_text("old")
    (dist / "SHA256SUMS").write_text("0  old.whl\n")

    def packages(shop: Workshop) -> list[Path]:
        (shop.dist / "new.whl").write_text("new")
        return [shop.dist / "new.whl"]

    def chart(_: Workshop) -> list[Path]:
        raise NotReleasable("helm ended with 1")

    monkeypatch.setattr(Workshop, "packages", packages)
    monkeypatch.setattr(Workshop, "chart", chart)
    monkeypatch.setattr(Workshop, "install_file", lambda _: [])
    with pytest.raises(NotReleasable, match="helm ended"):
        release(project, dist, image=False)
    assert sorted(file.name for file in dist.iterdir()) == ["SHA256SUMS", "old.whl"]

    monkeypatch.setattr(Workshop, "chart", lambda _: [])
    assert release(project, dist, image=False) == [dist / "new.whl", dist / "SHA256SUMS"]
    assert sorted(file.name for file in dist.iterdir()) == ["SHA256SUMS", "new.whl"]
