"""Rules about PodGroups, pods, job flows, HyperNodes and cron jobs."""

from typing import Any, Final

from tests.admission.asking import queue
from tests.admission.changes import GONE
from tests.admission.table.case import NAMES, NEVER_ASKED, SCHEMA, Case
from volcano_py.admission.contract import UPDATE

_TIER: Final = {"mode": "hard", "highestTierAllowed": 1}
_BOTH: Final = {**_TIER, "highestTierName": "rack"}
_TWICE: Final = "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously."
_LEAST, _MOST = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"


def _group(bad: dict[str, Any], good: dict[str, Any], says: str, at: str, **more: Any) -> Case:
    return Case(path="/podgroups/validate", bad=bad, good=good, says=says, at=at, **more)


def _pod(bad: dict[str, str], good: dict[str, str], says: str, at: str = "") -> Case:
    return Case(
        path="/pods/validate",
        bad={"metadata/annotations": bad},
        good={"metadata/annotations": good},
        says=says,
        at=at or f"metadata.annotations[{next(iter(bad))}]",
    )


def _flow(bad: dict[str, Any], good: dict[str, Any], says: str, **more: Any) -> Case:
    return Case(path="/jobflows/validate", bad=bad, good=good, says=says, at="spec.flows", **more)


def _pattern(pattern: str) -> dict[str, Any]:
    return {"spec/members/0/selector": {"regexMatch": {"pattern": pattern}}}


def _node(bad: dict[str, Any], good: dict[str, Any], says: str, **more: Any) -> Case:
    at = more.pop("at", "spec.members[0].selector.regexMatch.pattern")
    return Case(path="/hypernodes/validate", bad=bad, good=good, says=says, at=at, **more)


def _cron(bad: dict[str, Any], good: dict[str, Any], says: str, at: str, **more: Any) -> Case:
    return Case(path="/cronjobs/validate", bad=bad, good=good, says=says, at=at, **more)


_WAITING: Final = {"spec/flows/0/dependsOn": {"targets": ["b"]}}
_UNKNOWN: Final = {"spec/flows/0/dependsOn": {"targets": ["x"]}}
_REPEATED: Final = {"spec/flows/2": {"name": "b", "dependsOn": {"targets": ["a"]}}}
_NOT_DAG: Final = "jobflow Flow is not DAG"
_WRONG: Final = "spec.members.selector.regexMatch.pattern: Invalid value: "

OTHERS: Final = {
    "the operation": Case(
        path="/podgroups/validate",
        operation=UPDATE,
        says="unsupported operation UPDATE",
        unreachable=NEVER_ASKED,
    ),
    **{
        f"the operation of {path}": Case(
            path=path, operation="CONNECT", says=f"expect operation to be {allowed}", unreachable=NEVER_ASKED
        )
        for path, allowed in (
            ("/podgroups/mutate", "'CREATE' or 'UPDATE'"),
            ("/pods/mutate", "'CREATE'"),
            ("/pods/validate", "'CREATE'"),
            ("/jobflows/validate", "'CREATE' or 'UPDATE'"),
            ("/hypernodes/validate", "'CREATE' or 'UPDATE'"),
            ("/cronjobs/validate", "'CREATE' or 'UPDATE'"),
        )
    },
    # PodGroups
    "no such queue": _group(
        {"spec/queue": "gone"},
        {"spec/queue": "t"},
        'unable to find queue: queue.scheduling.volcano.sh "gone" not found',
        "spec.queue",
        queues=(queue("t"),),
    ),
    "a closed queue": _group(
        {"spec/queue": "t"},
        {"spec/queue": "default"},
        "can only submit PodGroup to queue with state `Open`, queue `t` status is `Closed`",
        "spec.queue",
        queues=(queue("t", "Closed"),),
    ),
    "topology twice": _group(
        {"spec/networkTopology": _BOTH}, {"spec/networkTopology": _TIER}, _TWICE, "spec.networkTopology"
    ),
    "topology of a sub-group twice": _group(
        {"spec/subGroupPolicy": [{"name": "p", "networkTopology": _BOTH}]},
        {"spec/subGroupPolicy": [{"name": "p", "networkTopology": {"highestTierName": "rack"}}]},
        f"in subGroupPolicy 'p': {_TWICE}",
        "spec.subGroupPolicy[0].networkTopology",
    ),
    # Pods
    "a budget of nothing": _pod(
        {_LEAST: "0"}, {_LEAST: "1"}, f'invalid value <"0"> for {_LEAST}, it must be a positive integer'
    ),
    "a budget of less": _pod(
        {_MOST: "-3"}, {_MOST: "3"}, f'invalid value <"-3"> for {_MOST}, it must be a positive integer'
    ),
    "a budget of no percent": _pod(
        {_LEAST: "0%"}, {_LEAST: "1%"}, "it must be a valid percentage which between 1% ~ 99%"
    ),
    "a budget of all": _pod({_MOST: "100%"}, {_MOST: "99%"}, "it must be a valid percentage which between 1% ~ 99%"),
    "a budget in words": _pod(
        {_LEAST: "many"}, {_LEAST: "30%"}, 'invalid value strconv.Atoi: parsing "many": invalid syntax'
    ),
    "two budgets": _pod(
        {_LEAST: "1", _MOST: "1"},
        {_LEAST: "1"},
        f"not allow configure multiple annotations <[{_LEAST} {_MOST}]> at same time",
        "metadata.annotations",
    ),
    # Job flows
    "a target that is no flow": _flow(_UNKNOWN, {}, f"{_NOT_DAG}: vertex is not defined: x"),
    "a circle": _flow(_WAITING, _REPEATED, _NOT_DAG),
    "a change to a circle": _flow(_WAITING, {"spec/flows": []}, _NOT_DAG, operation=UPDATE),
    "a change to a target that is no flow": _flow(_UNKNOWN, {}, "vertex is not defined: x", operation=UPDATE),
    # HyperNodes
    "no members": _node(
        {"spec/members": []},
        {},
        "spec.members: Invalid value: null: member must have at least one member",
        at="spec.members",
        unreachable=SCHEMA,
    ),
    "members left out": _node({"spec/members": GONE}, {}, "member must have at least one member", at="spec.members"),
    "a pattern": _node(
        _pattern("node-("),
        _pattern("node-(a|b)"),
        f'{_WRONG}"node-(": member regexMatch pattern is invalid: error parsing regexp: missing closing ): `node-(`',
    ),
    "letters that nobody knows": _node(
        _pattern(r"\p{Gondorian}"),
        _pattern(r"\p{Greek}|\p{Lu}|\pL"),
        r"member regexMatch pattern is invalid: error parsing regexp: invalid character class range: `\p{Gondorian}`",
    ),
    "looking around": _node(
        _pattern("(?=a)"),
        _pattern("(?i:a)"),
        "member regexMatch pattern is invalid: error parsing regexp: invalid or unsupported Perl syntax: `(?=`",
    ),
    "a change to a pattern": _node(
        _pattern("a**"),
        _pattern("a*?"),
        "error parsing regexp: invalid nested repetition operator: `**`",
        operation=UPDATE,
    ),
    # Cron jobs
    "no schedule": _cron({"spec/schedule": ""}, {}, "schedule is required, but got empty", "spec.schedule"),
    "a zone in the schedule": _cron(
        {"spec/schedule": "TZ=UTC 30 6 * * *"},
        {"spec/schedule": "30 6 * * *", "spec/timeZone": "UTC"},
        "schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field",
        "spec.schedule",
    ),
    "a schedule": _cron(
        {"spec/schedule": "61 * * * *"},
        {"spec/schedule": "59 * * * *"},
        "schedule is not a valid cron expression",
        "spec.schedule",
    ),
    "an empty zone": _cron(
        {"spec/timeZone": ""}, {}, "timeZone must be nil or non-empty string, got empty string", "spec.timeZone"
    ),
    "a zone that is none": _cron(
        {"spec/timeZone": "../etc"}, {"spec/timeZone": "Etc/UTC"}, "unknown timeZone ../etc", "spec.timeZone"
    ),
    "the zone of some machine": _cron(
        {"spec/timeZone": "Local"},
        {"spec/timeZone": "Europe/Berlin"},
        "timeZone can't be Local, and must be defined in https://www.iana.org/time-zones",
        "spec.timeZone",
    ),
    "a zone that nobody knows": _cron(
        {"spec/timeZone": "Mars/Olympus"},
        {"spec/timeZone": "America/New_York"},
        "invalid timeZone Mars/Olympus",
        "spec.timeZone",
    ),
    "a long name": _cron(
        {"metadata/name": "c" * 53},
        {"metadata/name": "c" * 52},
        "cronJob name must be no more than 52 characters to accommodate job name suffix (max 63 total)",
        "metadata.name",
    ),
    "a name that is none": _cron(
        {"metadata/name": "a_"},
        {"metadata/name": "a.b"},
        'invalid cronJob name "a_": name part must consist of',
        "metadata.name",
        unreachable=NAMES,
    ),
    "a change of the schedule": _cron(
        {"spec/schedule": "sometimes"},
        {"spec/schedule": "@every 1h"},
        "schedule is not a valid cron expression",
        "spec.schedule",
        operation=UPDATE,
    ),
    "a change of the zone": _cron(
        {"spec/timeZone": "local"}, {"spec/suspend": True}, "timeZone can't be Local", "spec.timeZone", operation=UPDATE
    ),
}
