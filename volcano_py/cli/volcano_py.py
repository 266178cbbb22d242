"""The `volcano-py` command."""

import argparse
import sys
from collections.abc import Sequence
from typing import Final

import volcano_py
from volcano_py.cli.command import Command, run_command

COMMANDS: Final = (
    Command(
        "demo",
        "volcano_py.cli.demo",
        "show two cases of gang scheduling, with API server, nodes, controllers and scheduler in one process",
    ),
    Command(
        "up",
        "volcano_py.cli.up",
        "run a simulated cluster for kubectl, until Ctrl-C; print the line that sets KUBECONFIG",
    ),
    Command(
        "migrate",
        "volcano_py.cli.migrate",
        "check a cluster that runs Volcano: what stays the same, what differs, what is missing",
    ),
)
"""The commands of `volcano-py`; to add one, write its module (`volcano_py.cli.command`) and add a line here."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="volcano-py", description="Try volcano_py without a cluster, or check a cluster that runs Volcano."
    )
    parser.add_argument("--version", action="version", version=f"volcano_py {volcano_py.__version__}")
    return run_command(parser, COMMANDS, sys.argv[1:] if arguments is None else arguments)


if __name__ == "__main__":
    sys.exit(main())
