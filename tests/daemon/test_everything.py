"""Every plugin and every action at once, through the daemon on an embedded API server."""

from typing import Any

from tests.daemon.cluster import condition, placed, scheduler
from tests.daemon.test_victim_policies import put_classes, put_job, put_node, run_pods
from tests.effects.waiting import until
from volcano_py.actions import ACTIONS
from volcano_py.apiserver import ApiServer
from volcano_py.conf.loader import parse_conf
from volcano_py.framework.state.report import CycleReport
from volcano_py.plugins import PLUGINS
from volcano_py.scheduler import resolve, run_cycle

CONF = """\
actions: "enqueue, allocate, backfill, preempt, reclaim, gangpreempt, gangreclaim, shuffle"
tiers:
- plugins:
  - {name: priority}
  - {name: gang}
  - {name: conformance}
  - {name: pdb}
  - {name: cdp}
  - {name: sla, arguments: {sla-waiting-time: 1h}}
  - {name: tdm, arguments: {tdm.revocable-zone.rz1: "00:00-23:59"}}
- plugins:
  - {name: overcommit}
  - {name: drf}
  - {name: predicates}
  - {name: proportion}
  - {name: capacity}
  - {name: nodeorder}
  - {name: binpack}
  - {name: nodegroup, arguments: {strict: false}}
  - {name: resourcequota}
  - {name: resource-strategy-fit}
  - {name: task-topology}
  - {name: network-topology-aware}
  - {name: usage}
  - {name: rescheduling}
"""


def going(server: ApiServer) -> list[str]:
    """Return the pods that have been told to end."""
    return [pod["metadata"]["name"] for pod in server.list("pods", "default") if "deletionTimestamp" in pod["metadata"]]


async def test_all_policies_together_schedule_and_evict_without_a_failure(server: ApiServer) -> None:
    policy = resolve(parse_conf(CONF, "everything.conf"))
    reports: list[CycleReport] = []

    def cycle(*arguments: Any) -> Any:
        memory, report = run_cycle(*arguments)
        reports.append(report)
        return memory, report

    put_classes(server)
    for number in range(3):
        put_node(server, f"n{number}", cpu=2)
    async with scheduler(server.url, policy=policy, cycle=cycle) as running:
        put_job(server, "low", 6, minimum=1, priority="low")
        await until(lambda: len(placed(server, "low")) == 6)
        await run_pods(running, *(f"low-{number}" for number in range(6)))
        put_job(server, "high", 4, priority="high")
        put_job(server, "huge", 9, priority="high")
        await until(lambda: len(going(server)) == 4)
        await until(lambda: condition(server, "huge-0"))

    assert all(f"{{name: {name}" in CONF for name in PLUGINS)
    assert all(name in CONF for name in ACTIONS)
    assert [failure for report in reports for failure in report.failures] == []
    assert {name.partition("-")[0] for name in going(server)} == {"low"}
