"""The commands of a page of documentation, run as a reader types them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.e2e.control_plane import ControlPlane

REPOSITORY = Path(__file__).resolve().parents[2]
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
YAML = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class CommandFailed(Exception):
    """A command of a page ended with an error; the message has what it printed."""


def section(page: Path, title: str) -> str:
    """Return the text of a section with its subsections."""
    lines = page.read_text().splitlines(keepends=True)
    (start,) = [at for at, line in enumerate(lines) if re.fullmatch(rf"#+ {re.escape(title)}\n", line)]
    level = lines[start].index(" ")
    ends = [at for at in range(start + 1, len(lines)) if re.match(rf"#{{1,{level}}} ", lines[at])]
    return "".join(lines[start : ends[0] if ends else len(lines)])


def commands(page: Path, title: str) -> list[str]:
    """Return the commands of a section in their order: what follows a `$` in blocks of the kind console."""
    return [one for block in CONSOLE.findall(section(page, title)) for one in commands_of(block)]


def commands_of(block: str) -> Iterator[str]:
    """Yield the commands of a console block: lines after a `$`; one that ends with a backslash goes on in the next."""
    lines = iter(block.splitlines())
    for line in lines:
        if not line.startswith("$ "):
            continue
        command = line.removeprefix("$ ")
        while command.endswith("\\"):
            command = command.removesuffix("\\") + next(lines)
        yield command


def files(page: Path, title: str) -> list[str]:
    """Return the YAML blocks of a section in their order."""
    return YAML.findall(section(page, title))


def in_shell(
    command: str, folder: Path, environment: Mapping[str, str], *, fails: bool = False, timeout: float = 150.0
) -> str:
    """Run a command in a shell and return what it prints; raise CommandFailed if it ends otherwise than expected."""
    ran = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
    if bool(ran.returncode) != fails:
        raise CommandFailed(f"$ {command}\nended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return ran.stdout + ran.stderr


class Reader:
    """Somebody at a terminal in the checkout, with kubectl, the project's programs and a kubeconfig."""

    def __init__(self, plane: ControlPlane, kubeconfig: Path | None = None, folder: Path = REPOSITORY) -> None:
        self._folder = folder
        kubectl = plane.binaries["kubectl"].parent
        self.environment = {
            **{name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
            "PATH": f"{kubectl}:{Path(sys.executable).parent}:/usr/bin:/bin",
            "KUBECONFIG": str(kubeconfig or plane.kubeconfig),
            "HOME": str(plane.processes.folder),
        }

    def types(self, command: str, *, fails: bool = False, timeout: float = 150.0) -> str:
        """Run a command in a shell and return what it prints."""
        return in_shell(command, self._folder, self.environment, fails=fails, timeout=timeout)
