"""Cron jobs: their schedule, time zone and name."""

import re
from collections.abc import Iterator
from typing import Final

from volcano_py.admission import names
from volcano_py.admission.contract import CREATE, UPDATE, Joining, Obj, Options, Refusal, Request, Verdict, View
from volcano_py.admission.jobs import spec_flaws
from volcano_py.admission.reading import name_of, part, quoted, text, typed, wrong_operation
from volcano_py.api.batch import Job
from volcano_py.api.job_defaults import with_defaults
from volcano_py.api.schedule import ScheduleError, ZoneError, names_a_zone, parse_schedule, zone_named

LONGEST_NAME: Final = 52
"""What is left of a name of 63 characters for the time that is added to the names of jobs."""

_ZONE_PART: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}", re.ASCII)
_MOST_WARNINGS: Final = 5
_EXAMPLE: Final = 'five fields, such as "30 6 * * 1-5", or @hourly, @daily, "@every 1h30m"'


def validate(request: Request, view: View, options: Options) -> Verdict:
    """Refuse a cron job that could never start, or not when its owner means it to."""
    if request.operation not in (CREATE, UPDATE):
        return wrong_operation("'CREATE' or 'UPDATE'")
    spec = part(request.object, "spec")
    refusals = (*_schedule(text(spec, "schedule")), *_time_zone(spec), *name_flaws(name_of(request.object)))
    return Verdict(refusals, warnings=tuple(_of_jobs(request.object, options)), joining=Joining.SEMICOLON)


def _of_jobs(cron_job: Obj, options: Options) -> Iterator[str]:
    """Yield what would be refused of the jobs that a cron job creates; the queue may be there by then."""
    wire = {"metadata": {"name": name_of(cron_job)}, "spec": part(cron_job, "spec", "jobTemplate", "spec")}
    job = typed(wire, Job)
    if isinstance(job, Refusal):
        return
    for flaw in spec_flaws(wire, with_defaults(job), options)[:_MOST_WARNINGS]:
        yield f"its jobs would be refused: {flaw.message.strip(' ;.')} (spec.jobTemplate.{flaw.field}: {flaw.hint})"


def name_flaws(name: str) -> tuple[Refusal, ...]:
    """Return what is wrong with the name of a cron job; names of its jobs add eleven characters to it."""
    if len(name) > LONGEST_NAME:
        sentence = (
            f" cronJob name must be no more than {LONGEST_NAME} characters to accommodate job name suffix "
            f"(max {names.LONGEST_LABEL} total)"
        )
        return (Refusal(sentence, "metadata.name", f"shorten the name by {len(name) - LONGEST_NAME} characters"),)
    if problems := names.qualified(name):
        sentence = f" invalid cronJob name {quoted(name)}: {'; '.join(problems)}"
        return (Refusal(sentence, "metadata.name", "use lower case letters, digits and -"),)
    return ()


def _schedule(schedule: str) -> tuple[Refusal, ...]:
    path = "spec.schedule"
    if not schedule:
        return (Refusal(" schedule is required, but got empty", path, f"write {_EXAMPLE}"),)
    if names_a_zone(schedule):
        sentence = " schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field"
        return (Refusal(sentence, path, "move the zone to spec.timeZone"),)
    try:
        parse_schedule(schedule)
    except ScheduleError as error:
        sentence = f" schedule is not a valid cron expression: {error}"
        return (Refusal(sentence, path, f"write {_EXAMPLE}"),)
    return ()


def _time_zone(spec: Obj) -> tuple[Refusal, ...]:
    path, hint = "spec.timeZone", "write a name of the IANA list, such as Europe/Berlin, or leave it out"
    zone = spec.get("timeZone")
    if not isinstance(zone, str):
        return ()
    if not zone:
        return (Refusal(" timeZone must be nil or non-empty string, got empty string", path, hint),)
    refusals: tuple[Refusal, ...] = ()
    if any(
        piece in (".", "..") or piece.startswith("-") or not _ZONE_PART.fullmatch(piece) for piece in zone.split("/")
    ):
        refusals += (Refusal(f" unknown timeZone {zone}", path, hint),)
    if zone.lower() == "local":
        sentence = " timeZone can't be Local, and must be defined in https://www.iana.org/time-zones"
        return (*refusals, Refusal(sentence, path, hint))
    try:
        zone_named(zone)
    except ZoneError:
        refusals += (Refusal(f" invalid timeZone {zone}", path, hint),)
    return refusals
