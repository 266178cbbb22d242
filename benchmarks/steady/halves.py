"""All halves, in the order A-B-B-A, and one row per scheduler."""

import argparse
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.steady import samples
from benchmarks.steady.load import Load, Plan, draw
from benchmarks.steady.measure import Half, Waits, measure
from benchmarks.steady.schedulers import BUILT_IN, ProgramMissing, SchedulerFile, order, program, read

_NUMBERS: Final = {"nodes": int, "waiting": int, "minutes": float, "rate": float, "seed": int, "never": float}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this workload to the command line; what is not given comes from its YAML file."""
    group = parser.add_argument_group("options of steady")
    group.add_argument("--server", choices=["embedded", "real"], help="the API server (default: embedded)")
    group.add_argument("--size", help="a size of workloads/steady.yaml (default: full on real, small on embedded)")
    helps = {
        "nodes": "nodes of 32 CPU",
        "waiting": "gangs that wait at the start",
        "minutes": "how long is measured",
        "rate": "gangs that arrive per second",
        "seed": "what arrives: equal seeds, equal arrivals",
        "never": "the share of gangs that can never run",
    }
    for name, kind in _NUMBERS.items():
        group.add_argument(f"--{name}", type=kind, help=f"{helps[name]} (default: as the size says)")
    group.add_argument(
        "--balanced",
        action="store_true",
        default=None,
        help="gangs arrive when as many pods have ended, so that as many pods wait at any time",
    )
    group.add_argument("--rounds", type=int, help="how often all schedulers run as A-B-B-A (default: 1)")
    group.add_argument(
        "--scheduler", action="append", type=Path, metavar="FILE", help="one more scheduler, a YAML file"
    )
    group.add_argument("--only", action="append", metavar="NAME", help="only these schedulers, by name")
    group.add_argument("--once", action="store_true", default=None, help="each scheduler once, instead of A-B-B-A")


def run(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """Run all halves and return one row per scheduler; ``options`` of the workload are those of the command line."""
    options = {key: value for key, value in workload.get("options", {}).items() if value is not None}
    kind = options.get("server", workload["server"])
    size = options.get("size", "full" if kind == "real" else "small")
    if size not in workload["sizes"]:
        raise SystemExit(f"steady has no size {size}: choose one of {', '.join(workload['sizes'])}")
    chosen = {**workload["sizes"][size], **options}
    load = Load(**{name: chosen[name] for name in _NUMBERS}, balanced=options.get("balanced", False))
    waits = Waits(chosen["warm_up_s"], chosen["settle_s"])
    schedulers, missing = available([*BUILT_IN, *options.get("scheduler", ())], options.get("only", ()))
    plan, halves = draw(load), list[Half]()
    turns = schedulers if options.get("once") else order(schedulers, options.get("rounds", workload["rounds"]))
    for number, scheduler in enumerate(turns, 1):
        print(f"steady: half {number} of {len(turns)}, {scheduler.name}, {kind} API server", flush=True)
        halves.append(measure(kind, load, plan, scheduler, waits))
        print(f"steady: {_numbers(halves[-1:], load, plan)}", flush=True)
    of_run = {"server": kind, "size": size, **msgspec.to_builtins(load)}
    rows = [_row(of_run, [half for half in halves if half.scheduler == one], load, plan) for one in schedulers]
    return [*rows, *({"scheduler": name, **of_run, "missing": why} for name, why in missing.items())]


def available(paths: Sequence[Path], only: Sequence[str] = ()) -> tuple[list[SchedulerFile], dict[str, str]]:
    """Return the schedulers of some files, and why those that cannot run are missing; it says so plainly.

    Raises SystemExit if a name of ``only`` is in none of the files, or if no scheduler is left.
    """
    files = [read(path) for path in paths]
    if unknown := set(only) - {one.name for one in files}:
        raise SystemExit(f"no file describes the scheduler {', '.join(sorted(unknown))}")
    found, missing = list[SchedulerFile](), dict[str, str]()
    for one in files:
        if only and one.name not in only:
            continue
        try:
            program(one.command[0])
            found.append(one)
        except ProgramMissing as error:
            missing[one.name] = str(error)
            print(f"steady: {one.name} is left out: {error}", flush=True)
    if not found:
        raise SystemExit("steady: no scheduler is left to measure")
    return found, missing


def _row(of_run: dict[str, Any], halves: list[Half], load: Load, plan: Plan) -> dict[str, Any]:
    first = halves[0]
    at = [one - first.started for one in first.sampled_at]
    series = {
        "at_s": [round(one, 1) for one in at],
        "rss_mib": [half.rss_mib for half in halves],
        "full": [samples.full(half.pods, load.slots, half.sampled_at) for half in halves],
        "waiting": [samples.waiting(plan.gangs, half.pods, half.sampled_at) for half in halves],
        "waiting_pods": [samples.waiting_pods(half.pods, half.sampled_at) for half in halves],
        "room_to_bind_s": samples.quantiles(_room(halves, load, plan).seconds),
        "creation_to_reason_s": samples.quantiles(_reasons(halves, plan).seconds),
        "halves": [_numbers([half], load, plan) for half in halves],
    }
    return {"scheduler": first.scheduler.name, **of_run, **_numbers(halves, load, plan), "series": series}


def _room(halves: Iterable[Half], load: Load, plan: Plan) -> samples.RoomSamples:
    total = samples.RoomSamples()
    for half in halves:
        one = samples.room_to_bind(plan, half.pods, load.slots, half.span, gangs=half.scheduler.gangs)
        total.seconds += one.seconds
        total.without_room += one.without_room
    return total


def _reasons(halves: Iterable[Half], plan: Plan) -> samples.ReasonSamples:
    total = samples.ReasonSamples()
    for half in halves:
        one = samples.creation_to_reason(plan.arriving, half.pods, half.span, half.settled)
        total.seconds += one.seconds
        total.missing += one.missing
    return total


def _numbers(halves: list[Half], load: Load, plan: Plan) -> dict[str, Any]:
    """Return what some halves of one scheduler say together."""
    seconds = sum(half.ended - half.started for half in halves)
    room, reasons = _room(halves, load, plan), _reasons(halves, plan)
    bound = len(room.seconds)
    cycles = [half.cycles for half in halves if half.cycles is not None]
    backlog = [half.backlog_s for half in halves if half.backlog_s is not None]
    shares = [one for half in halves for one in samples.full(half.pods, load.slots, half.sampled_at)]
    waits = [samples.waiting(plan.gangs, half.pods, [half.ended])[0] for half in halves]
    pods = [samples.waiting_pods(half.pods, [half.started, half.ended]) for half in halves]
    writes = sum((half.writes for half in halves), Counter[str]())
    return {
        "room_to_bind_ms": samples.marks(room.seconds),
        "without_room": room.without_room,
        "creation_to_reason_ms": samples.marks(reasons.seconds),
        "reason_missing": reasons.missing,
        "binds_per_s": round(bound / seconds, 2),
        "slots_taken": round(statistics.mean(shares), 4),
        "waiting_at_end": round(statistics.mean(waits)),
        "waiting_pods": {
            when: round(statistics.mean(half[place] for half in pods)) for place, when in enumerate(("start", "end"))
        },
        "cycles_per_s": round(sum(cycles) / seconds, 2) if cycles else None,
        "cores": round(sum(half.cpu_s for half in halves) / seconds, 3),
        "server_cores": round(sum(half.server_cpu_s for half in halves) / seconds, 3),
        "rss_mib": {
            "start": round(statistics.mean(half.rss_mib[0] for half in halves), 1),
            "end": round(statistics.mean(half.rss_mib[-1] for half in halves), 1),
            "most": max(max(half.rss_mib) for half in halves),
        },
        "writes_per_bind": {what: round(number / bound, 3) for what, number in writes.most_common()} if bound else {},
        "backlog_s": round(statistics.mean(backlog), 1) if len(backlog) == len(halves) else None,
        "driver_late_ms": samples.marks([late for half in halves for late in half.late_s]),
    }
