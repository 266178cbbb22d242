"""Rows about evictions, continued with all actions: victims come back pending with new uids, and evictions end."""

import json

import msgspec
import pytest

from tests.conformance.conftest import OWN_ROWS
from tests.conformance.handlers.scheduler.world import OBJECTS, with_uid
from tests.conformance.row_files import Row, read_rows
from volcano_py.conf.schema import FLAGS
from volcano_py.testing import Scenario

AREAS = ("preempt", "reclaim", "gangpreempt", "gangreclaim")
ROWS = [
    row
    for row in read_rows(OWN_ROWS)
    if row.area.removeprefix("scheduler/") in AREAS
    and row.case.operation == "cycle"
    and row.case.input.keys() <= {*OBJECTS}
]


def conf(row: Row) -> str:
    """Return the row's effective plugins with all actions; a flag that is absent is off."""
    scheduler = row.case.scheduler or {}
    effective = set(scheduler["effectivePlugins"])
    tiers = [
        {
            "plugins": [
                {**dict.fromkeys(FLAGS, False), **entry} for entry in tier["plugins"] if entry["name"] in effective
            ]
        }
        for tier in scheduler["tiers"]
    ]
    actions = ", ".join(("enqueue", "allocate", "backfill", *AREAS))
    return json.dumps({"actions": actions, "tiers": tiers, "configurations": scheduler.get("configurations", [])})


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in ROWS])
def test_no_pod_is_evicted_twice_and_five_more_cycles_change_nothing(row: Row) -> None:
    scenario = Scenario(queues=[], conf=conf(row), scheduler_names=("", "volcano"))
    scenario.add(
        *(msgspec.convert(with_uid(one), kind) for key, kind in OBJECTS.items() for one in row.case.input.get(key, ()))
    )

    result = scenario.run()

    gone = [one.task.name for one in result.evicted]
    assert len(gone) == len(set(gone))
