"""The sources of a release: the files that git knows, with nothing that happens to lie beside them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path


class NotReleasable(Exception):
    """The release cannot be made; the message is for the user."""


def git(root: Path, *arguments: str) -> str:
    """Run git in a folder and return what it prints."""
    ran = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise NotReleasable(f"git {' '.join(arguments)} failed in {root}: {ran.stderr.strip()}")
    return ran.stdout


def changes(root: Path) -> list[str]:
    """Return the files that differ from the last commit, and those that git does not know."""
    return [line[3:] for line in git(root, "status", "--porcelain").splitlines()]


def commit_time(root: Path) -> int:
    """Return when the last commit was made, as seconds since 1970."""
    return int(git(root, "log", "-1", "--format=%ct"))


def export(root: Path, folder: Path, epoch: int) -> None:
    """Copy the files that git knows, with one time and modes that do not depend on the user's umask."""
    for name in git(root, "ls-files", "-z").split("\0"):
        source, target = root / name, folder / name
        if not name or not (source.is_symlink() or source.is_file()):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.symlink_to(os.readlink(source))
            continue
        shutil.copyfile(source, target)
        target.chmod(0o755 if os.access(source, os.X_OK) else 0o644)
        os.utime(target, (epoch, epoch))
