"""The `volcano-py` command."""

import argparse
import sys
from collections.abc import Sequence

import volcano_py
from volcano_py.cli.flags import add_port, flag
from volcano_py.cli.up import add_up_flags, up
from volcano_py.runtime.options import OptionError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand and return the exit code."""
    options = _parser().parse_args(arguments)
    if options.command == "up":
        return up(options)
    from volcano_py.cli.demo import demo
    from volcano_py.local.demo import DemoOptions

    return demo(DemoOptions(port=options.port, gang=not options.without_gang, give_up_s=options.give_up))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="volcano-py", description="A batch scheduler for Kubernetes, without a cluster."
    )
    parser.add_argument("--version", action="version", version=f"volcano_py {volcano_py.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo = commands.add_parser(
        "demo", help="an API server, nodes and the scheduler in one process, with two gang scheduling cases"
    )
    add_port(demo)
    demo.add_argument(
        "--without-gang", action="store_true", help="leave the gang plugin out and see jobs block each other"
    )
    demo.add_argument(
        "--give-up", type=flag(_seconds), default=45.0, metavar="SECONDS", help="end then (default: %(default)s)"
    )
    add_up_flags(
        commands.add_parser(
            "up", help="the same as a cluster that stays up, for kubectl: prints the KUBECONFIG line, ends with Ctrl-C"
        )
    )
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise OptionError(f"{text!r} is no time: write a number of seconds above 0")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
