"""The commands of docs/migration.md, run as an operator would: block by block, in the root of the repository.

A command is a line of a console block that begins with `$`; a line that ends with a backslash goes on in the next one.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from textwrap import dedent

from tests.e2e.commands import CommandFailed, commands_of, in_shell
from tests.e2e.control_plane import ControlPlane

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "migration.md"


def blocks(heading: str) -> list[list[str]]:
    """Return the commands of each console block below a heading, down to the next heading of any level."""
    text = GUIDE.read_text()
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise CommandFailed(f"{GUIDE.name} has no heading {heading!r}")
    consoles = re.findall(r"```console\n(.*?)```", found[1], re.DOTALL)
    return [list(commands_of(dedent(block))) for block in consoles]


class Guide:
    """Runs commands of the guide in a folder that stands for the operator's working directory."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._plane = plane
        self.folder = folder
        for name in ("manifests", "chart"):  # the operator works in a checkout, and saves files there
            if (ROOT / name).exists():
                (folder / name).symlink_to(ROOT / name)
        programs = folder / "bin"
        programs.mkdir()
        (programs / "kubectl").symlink_to(plane.binaries["kubectl"])
        self._environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "KUBECONFIG": str(plane.kubeconfig),
            "HOME": str(folder),
        }

    def run(self, command: str, timeout: float = 120.0) -> str:
        """Run one command in a shell; return what it printed, and raise CommandFailed if it did not work."""
        return in_shell(command, self.folder, self._environment, timeout=timeout)
