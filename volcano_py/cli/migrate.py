"""`volcano-py migrate check`: says what would change if volcano_py took Volcano's place in a cluster."""

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any, Final

from rich.console import Console

from volcano_py.cli.flags import flag, parse_name
from volcano_py.cli.migrate_flags import judge_flag
from volcano_py.cli.migrate_report import print_report
from volcano_py.client.access import find_access
from volcano_py.client.api import Api
from volcano_py.client.problem import Problem
from volcano_py.migration.findings import Group, Ref, Report
from volcano_py.migration.reading import look

SAME: Final = 0
DIFFERENT: Final = 1
NOT_LOOKED: Final = 2
_WITHOUT_TERMINAL: Final = 120


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Declare the commands and their flags."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    check = commands.add_parser(
        "check",
        help="look at the cluster, without changing anything",
        description="Looks at a cluster that runs Volcano. Sends only lists. docs/migration.md explains the report.",
        epilog="Exit codes: 0 everything is the same, 1 something differs, 2 the cluster could not be looked at.",
    )
    check.add_argument(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="kubeconfig of the cluster (default: $KUBECONFIG, the account of the pod, or ~/.kube/config)",
    )
    check.add_argument("--context", default="", metavar="NAME", help="context of the kubeconfig (default: its own)")
    check.add_argument("--master", default="", metavar="URL", help="address of the API server")
    check.add_argument(
        "--namespace",
        "-n",
        type=flag(parse_name),
        default="volcano-system",
        help="where Volcano is installed; programs elsewhere are found, too (default: %(default)s)",
    )
    check.add_argument("--output", "-o", choices=["table", "json"], default="table", help="default: %(default)s")
    check.add_argument(
        "--verbose", "-v", action="store_true", help="show every finding, and the objects that stay the same"
    )


def run(flags: argparse.Namespace) -> int:
    """Check the cluster, print the report and return the exit code."""
    api = Api(lambda: find_access(server=flags.master, kubeconfig=flags.kubeconfig, context=flags.context))
    try:
        report = look(api, flags.namespace, judge_flag)
    except Problem as problem:
        print(f"volcano-py migrate check: {problem}", file=sys.stderr)
        return NOT_LOOKED
    finally:
        api.close()
    if flags.output == "json":
        json.dump(as_json(report, verbose=flags.verbose), sys.stdout, indent=2)
        print()
    else:
        terminal = sys.stdout.isatty()
        console = Console(width=None if terminal else _WITHOUT_TERMINAL, highlight=False, markup=False)
        print_report(console, report, verbose=flags.verbose)
    return exit_code(report)


def exit_code(report: Report) -> int:
    """Return 1 if something was found, 2 if a part could not be looked at, else 0."""
    if report.findings:
        return DIFFERENT
    return NOT_LOOKED if report.not_looked_at else SAME


def as_json(report: Report, *, verbose: bool) -> Mapping[str, Any]:
    """Return a report for programs."""
    counts, same = report.counts(), report.same()
    found: dict[str, Any] = {
        "summary": {
            "objects": len(set(report.looked_at)),
            "same": len(same),
            **{group.value: counts[group] for group in Group},
        },
        "findings": [
            {
                "group": one.group.value,
                "rule": one.rule,
                "object": _as_json(one.ref),
                "what": one.what,
                "advice": one.advice,
            }
            for one in report.sorted()
        ],
        "notLookedAt": report.not_looked_at,
        "notes": report.notes,
    }
    return {**found, "same": [_as_json(ref) for ref in same]} if verbose else found


def _as_json(ref: Ref) -> dict[str, str]:
    place = {"namespace": ref.namespace} if ref.namespace else {}
    return {"kind": ref.kind, "name": ref.name, **place}
