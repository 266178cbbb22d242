"""`volcano-py demo`: draws the demo while it runs, and reports the results at the end."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from volcano_py.apiserver import PortInUse
from volcano_py.cli.flags import add_port, flag
from volcano_py.cli.tables import NARROW, Cell, bar, compact, explained
from volcano_py.local.demo import DemoOptions, DemoResult, Frame, run_demo
from volcano_py.local.workload import GPU_GANG, GPU_PODS, TRAINING_JOBS, JobView
from volcano_py.runtime.logs import configure_logging
from volcano_py.runtime.options import OptionError
from volcano_py.runtime.signals import DEFAULT_SIGNALS
from volcano_py.runtime.supervisor import TaskFailed

_BAR = 16


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of the command."""
    add_port(parser)
    parser.add_argument(
        "--without-gang", action="store_true", help="leave out the plugin gang: jobs then block each other"
    )
    parser.add_argument(
        "--give-up",
        type=flag(_seconds),
        default=45.0,
        metavar="SECONDS",
        help="end after this time at the latest (default: %(default)s)",
    )


def run(flags: argparse.Namespace) -> int:
    """Run the demo in this terminal; return the exit code."""
    options = DemoOptions(port=flags.port, gang=not flags.without_gang, give_up_s=flags.give_up)
    configure_logging("warning")
    console = Console(soft_wrap=not sys.stdout.isatty())
    mode = "with gang scheduling" if options.gang else "WITHOUT the gang plugin"
    console.print(f"[bold]volcano_py demo[/], {mode}: API server, 17 nodes, controllers and scheduler in this process.")
    console.print(
        f"{TRAINING_JOBS} training jobs of 2 ps + 4 workers (10 CPU) on 16 CPUs; a job of {GPU_PODS} pods on 99 GPUs.\n"
    )
    try:
        if console.is_terminal:
            with Live(console=console, refresh_per_second=8, transient=False) as live:
                result = asyncio.run(_demo(options, lambda frame: live.update(screen(frame, console.width))))
        else:
            result = asyncio.run(_demo(options, _Lines(console)))
    except PortInUse as error:
        console.print(f"[red]{error.strerror}[/]: volcano-py demo --port 0", style="red", highlight=False)
        return 1
    except (TaskFailed, TimeoutError, OSError) as error:
        console.print(f"volcano-py demo: {error}", style="red", markup=False, highlight=False)
        return 1
    if isinstance(result, signal.Signals):
        console.print("\nstopped: nothing is left running")
        return 128 + result
    console.print()
    for line in _report(options, result):
        console.print(line, highlight=False)
    return 0


async def _demo(options: DemoOptions, show: Callable[[Frame], None]) -> DemoResult | signal.Signals:
    """Return the result, or the signal that ended the demo; a second signal exits at once."""
    loop = asyncio.get_running_loop()
    running = asyncio.create_task(run_demo(options, show), name="demo")
    received: list[signal.Signals] = []

    def end(number: signal.Signals) -> None:
        if received:
            os._exit(128 + number)
        received.append(number)
        running.cancel()

    for number in DEFAULT_SIGNALS:
        loop.add_signal_handler(number, end, number)
    await asyncio.gather(running, return_exceptions=True)
    return received[0] if received else running.result()


class _Lines:
    """Output without a terminal: prints a line whenever something has changed."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = ""

    def __call__(self, frame: Frame) -> None:
        jobs = "  ".join(f"{job.name} {_short(job)}" for job in frame.jobs)
        if jobs != self._last:
            self._last = jobs
            print(f"{frame.seconds:5.1f} s  {jobs}", file=sys.stdout, flush=True)


def _short(job: JobView) -> str:
    return "ended" if job.ended == job.pods else f"{job.placed}/{job.minimum}"


def screen(frame: Frame, width: int) -> Group:
    """Return the screen of a terminal with ``width`` columns."""
    size = _BAR if width >= NARROW else _BAR // 2
    rows: list[list[Cell]] = []
    for job in frame.jobs:
        colour = "green" if job.placed >= job.minimum else ("yellow" if job.placed else "dim")
        why = "" if job.placed >= job.minimum else _gist(job.why)
        state = "ended" if job.ended == job.pods else job.phase
        rows.append(
            [job.name, state, f"{job.placed}/{job.minimum}", bar(job.placed / job.pods, colour, size), Text(why)]
        )
    title = f"{frame.seconds:5.1f} s   {frame.note}"
    jobs = explained(("job", "phase", "placed/min", "", "why it waits"), rows, title)
    cells: list[list[Cell]] = [
        [name, f"{used:g}/{has:g} {'GPU' if 'gpu' in resource else 'CPU'}", bar(used / has, "cyan", size)]
        for name, resource, used, has in frame.nodes
    ]
    half = (len(cells) + 1) // 2
    empty: list[Cell] = ["", "", ""]
    pairs = [[*cells[i], *(cells[i + half] if i + half < len(cells) else empty)] for i in range(half)]
    return Group(jobs, Text(), compact(("node", "used", "", "node", "used", ""), pairs))


def _gist(why: str) -> str:
    """Return the most important part of a PodGroup's message, with missing resources first."""
    reason = why.rpartition("Origin reason is ")[2]
    nodes, unavailable, parts = reason.partition(" nodes are unavailable: ")
    if not unavailable:
        return reason
    listed = sorted(parts.rstrip(".").split(", "), key=lambda part: "Insufficient" not in part)
    return f"{', '.join(listed)} (of {nodes.rpartition('/')[2]} nodes)"


def _report(options: DemoOptions, result: DemoResult) -> list[str]:
    """Return the results as lines of text."""
    lines = [f"[bold]What happened[/] in {result.seconds:.1f} s, on the API server at {result.url}:"]
    ended = len(result.ended)
    if ended == TRAINING_JOBS:
        ideal = ended * options.run_time_s
        lines.append(
            f"  - all {ended} training jobs ended; without any gaps, one after the other, they need {ideal:.0f} s; "
            f"most jobs with only part of their pods placed at one time: {result.partly_placed}"
        )
    else:
        lines.append(f"  - {ended} of {TRAINING_JOBS} training jobs ended, then nothing changed any more")
        lines += [
            f"    {job.name} holds {job.placed} of {job.minimum} pods and waits for the rest" for job in result.stuck
        ]
    lines.append(f"  - {GPU_GANG} before the hundredth GPU: {result.gpus_bound_before} of {GPU_PODS} pods bound")
    if result.why_gpu:
        lines.append(f"    its PodGroup said: {result.why_gpu}")
    if result.gpu_seconds is not None:
        lines.append(f"    {result.gpu_seconds:.1f} s after that GPU came, all {GPU_PODS} were bound")
    lines.append(
        f"  - the job controller made {result.pods} pods, and the scheduler bound {result.bindings}; "
        f"both wrote {result.other_writes} PodGroups, statuses, conditions and events"
    )
    lines.append("")
    if options.gang:
        lines.append("Next: [bold]volcano-py demo --without-gang[/] shows what goes wrong without it;")
    else:
        lines.append("Next: [bold]volcano-py demo[/] shows the same with the gang plugin;")
    lines.append(
        "      [bold]volcano-py up[/] keeps a cluster running for jobs of your own, such as those of examples/;"
    )
    lines.append("      [bold]vc-scheduler --kubeconfig ...[/] runs the scheduler on a cluster of yours (README).")
    return lines


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise OptionError(f"{text!r} is not a time: write a number of seconds above 0")
    return seconds
