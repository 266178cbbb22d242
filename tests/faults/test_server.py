"""An API server that fails: what thousands of pods have in common is one line, not one line each."""

from structlog.testing import capture_logs

from tests.daemon.cluster import placed, put_job, put_node, scheduler
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer, Fault


async def test_binds_that_fail_for_one_cause_are_one_log_line_and_succeed_once_the_server_recovers(
    server: ApiServer,
) -> None:
    put_node(server, "n1", cpu=64)
    fault = server.faults.add(Fault("reply", verb="create", resource="pods/binding", code=403))
    with capture_logs() as lines:
        async with scheduler(server.url, period_s=0.1):
            for number in range(20):
                put_job(server, f"gang{number}", 2)
            await until(lambda: fault.hits >= 120)  # each pod three times
            server.faults.remove(fault)

            # A pod whose bind was refused a fourth or fifth time meanwhile backs off for 8 or 16 s.
            await until(lambda: len(placed(server)) == 40, timeout_s=30)

    told = [line for line in lines if line["log_level"] in ("info", "warning", "error") and "gang" in str(line)]
    assert 1 <= len(told) <= 3  # one line in ten seconds
    assert {line["event"] for line in told} == {"binds failed"}
    assert "injected fault" in told[0]["problem"]
