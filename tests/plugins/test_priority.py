from tests.framework.sessions import a_session
from tests.reference.world import World, a_job, a_task
from volcano_py.plugins.priority import Priority


def test_the_more_important_job_goes_first() -> None:
    plugin = Priority()
    ssn = a_session(World(jobs=(a_job("low", priority=-5), a_job("high", priority=2**31 - 1), a_job("none"))), plugin)

    assert plugin.job_order(ssn.state.jobs).tolist() == [5, -(2**31 - 1), 0]


def test_the_more_important_task_goes_first() -> None:
    plugin = Priority()
    ssn = a_session(World(tasks=(a_task("a", priority=7), a_task("b"))), plugin)

    assert plugin.task_order(ssn.state.tasks).tolist() == [-7, -1]
