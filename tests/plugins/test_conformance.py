import numpy as np
import pytest

from tests.framework.sessions import a_session
from tests.reference.world import World, a_job, a_node, a_shape, a_task
from volcano_py.framework.contract.extension_points import Preemptor, Purpose
from volcano_py.model.objects import TaskTrait
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.conformance import Conformance


@pytest.mark.parametrize("purpose", list(Purpose))
def test_critical_tasks_are_protected_in_every_action(purpose: Purpose) -> None:
    shape = a_shape(cpu=1)
    tasks = tuple(
        a_task(name, shape, job="j", status=TaskStatus.RUNNING, node="n1", traits=traits)
        for name, traits in (("plain", TaskTrait.PREEMPTABLE), ("critical", TaskTrait.PREEMPTABLE | TaskTrait.CRITICAL))
    )
    ssn = a_session(World((a_node(),), jobs=(a_job("j"),), tasks=tasks), Conformance())
    job = ssn.state.job(int(ssn.state.jobs.present()[0]))
    preemptor = Preemptor(purpose, job, ssn.state.queues["default"], ssn.state.task_of(0))
    candidates = ssn.eviction.all

    allowed = ssn.eviction.allowed(preemptor, candidates)

    assert [ssn.state.tasks.record(row).name for row in candidates.rows[allowed]] == ["plain"]
    assert np.array_equal(ssn.eviction.allowed_for_gang(preemptor, candidates), allowed)
