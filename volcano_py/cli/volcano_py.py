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
        "an API server, nodes and the scheduler in one process, with two gang scheduling cases",
    ),
    Command(
        "up",
        "volcano_py.cli.up",
        "a cluster of the same kind that stays up for kubectl: prints the KUBECONFIG line, ends with Ctrl-C",
    ),
    Command(
        "migrate",
        "volcano_py.cli.migrate",
        "looks at a cluster that runs Volcano: what will be the same here, what differs, what is missing",
    ),
)
"""The commands of `volcano-py`; to add one, write its module (`volcano_py.cli.command`) and add a line here."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="volcano-py", description="A batch scheduler for Kubernetes, without a cluster."
    )
    parser.add_argument("--version", action="version", version=f"volcano_py {volcano_py.__version__}")
    return run_command(parser, COMMANDS, sys.argv[1:] if arguments is None else arguments)


if __name__ == "__main__":
    sys.exit(main())
