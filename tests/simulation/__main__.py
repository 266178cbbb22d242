"""`python -m tests.simulation`: run many seeds, tell the story of one, or check that it always goes the same way."""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tests.simulation import regressions, report, runner, shrinking
from tests.simulation.drawing import draw_plan
from tests.simulation.logs import quiet
from tests.simulation.plan import SIZES, Plan, read
from tests.simulation.story import tell
from tests.simulation.world import simulate

_COMMANDS = ("run", "story", "check", "digest")
_OTHER_HASHES = "4711"


def main(arguments: Sequence[str]) -> int:
    """Run a command; without one, run seeds."""
    if not arguments or arguments[0] not in (*_COMMANDS, "-h", "--help"):
        arguments = ("run", *arguments)
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    sized = argparse.ArgumentParser(add_help=False)
    sized.add_argument("--size", choices=SIZES, default="short", help="how long and how big (default: %(default)s)")

    run = commands.add_parser("run", parents=[sized], help="run many seeds (the default)")
    run.add_argument("--seeds", type=int, default=1000, metavar="N", help="how many (default: %(default)s)")
    run.add_argument("--from", type=int, default=0, dest="first", metavar="SEED", help="the first (default: 0)")
    run.add_argument("--jobs", type=int, default=runner.cores(), metavar="N", help="processes (default: %(default)s)")
    run.set_defaults(command=_run)

    story = commands.add_parser("story", parents=[sized], help="cut a seed down and tell what happens")
    story.add_argument("seed", type=int, nargs="?", help="the seed")
    story.add_argument("--plan", type=Path, metavar="FILE", help="tell this plan instead, as it is")
    story.add_argument("--whole", action="store_true", help="do not cut it down")
    story.add_argument("--runs", type=int, default=shrinking.MOST_RUNS, metavar="N", help="how often to try")
    story.add_argument("--keep", metavar="WHY", help="write the plan down as a regression test, and why it is one")
    story.set_defaults(command=_story)

    check = commands.add_parser("check", parents=[sized], help="run a seed twice, once in another process")
    check.add_argument("seed", type=int)
    check.set_defaults(command=_check)

    digest = commands.add_parser("digest", parents=[sized], help="print the hash of a seed's history")
    digest.add_argument("seed", type=int)
    digest.set_defaults(command=_digest)
    return parser


def _run(options: argparse.Namespace) -> int:
    # SIGTERM, too; and a shell lets what runs in its background ignore Ctrl-C.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    progress = report.Progress()
    seeds = range(options.first, options.first + options.seeds)
    summary = runner.run_all(seeds, options.size, max(options.jobs, 1), progress.show)
    progress.end()
    report.show(summary, Console())
    return 0 if summary.flawless else 1


def _story(options: argparse.Namespace) -> int:
    if (options.seed is None) == (options.plan is None):
        print("name a seed or a file with a plan", file=sys.stderr)
        return 2
    quiet()
    plan = draw_plan(options.seed, SIZES[options.size]) if options.plan is None else _plan(options.plan)
    outcome, cut = simulate(plan, told=True), ""
    if outcome.violations and not options.whole and options.plan is None:
        smaller = _shrunk(plan, outcome.violations[0].invariant, options.runs)
        cut, outcome = shrinking.difference(plan, smaller), simulate(smaller, told=True)
    print(tell(outcome, cut))
    if options.keep:
        print(f"kept in {regressions.keep(outcome.plan, options.keep)}", file=sys.stderr)
    return 1 if outcome.violations else 0


def _plan(file: Path) -> Plan:
    """Return the plan of a file: one of a regression, or a plan alone."""
    text = file.read_text()
    return regressions.load(file).plan if '"why"' in text else read(text)


def _shrunk(plan: Plan, invariant: str, runs: int) -> Plan:
    terminal = sys.stderr.isatty()

    def tried(count: int, best: Plan) -> None:
        if terminal:
            print(f"\r\x1b[Ktried {count}: {shrinking.difference(plan, best)}", end="", file=sys.stderr, flush=True)

    smaller = shrinking.shrink(plan, shrinking.violating(invariant), runs, tried)
    if terminal:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    return smaller


def _digest(options: argparse.Namespace) -> int:
    quiet()
    print(simulate(draw_plan(options.seed, SIZES[options.size])).digest)
    return 0


def _check(options: argparse.Namespace) -> int:
    quiet()
    here = simulate(draw_plan(options.seed, SIZES[options.size])).digest
    there = elsewhere(options.seed, options.size)
    same = here == there
    print(f"seed {options.seed}: {here} here, {there} in another process: {'the same' if same else 'DIFFERENT'}")
    return 0 if same else 1


def elsewhere(seed: int, size: str) -> str:
    """Return the digest of a seed that another process computes, with other hashes of strings."""
    command = [sys.executable, "-m", "tests.simulation", "digest", str(seed), "--size", size]
    environment = {**os.environ, "PYTHONHASHSEED": _OTHER_HASHES}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
