"""A PodGroup that belongs to an earlier version of its job, and that the controller learns of after the restart."""

import msgspec
import pytest

from tests.controllers.job.builders import a_job_task, a_vcjob
from tests.controllers.job.world import World

TWO = a_job_task(replicas=2)


@pytest.mark.parametrize("with_pods", [True, False])
def test_a_group_that_nobody_knew_of_at_the_restart_is_made_again(with_pods: bool) -> None:
    """The answer to its creation was lost, and the watch was late: so it was adopted after the restart."""
    world = World(a_vcjob(TWO))
    if with_pods:
        world.starts()
    else:
        world.settle()
    assert world.group is not None
    before = world.group["metadata"]["uid"]
    world.job = msgspec.structs.replace(world.job, status=msgspec.structs.replace(world.job.status, version=1))
    world.restart()
    world.settle()

    assert world.group is not None
    kept = world.group["metadata"]["uid"] == before
    assert kept is with_pods  # pods of a running job keep their group
    assert world.group["metadata"]["annotations"]["volcano.sh/job-version"] == ("0" if kept else "1")


def test_a_group_of_another_program_without_a_version_is_kept() -> None:
    world = World(a_vcjob(TWO))
    world.settle()
    assert world.group is not None
    del world.group["metadata"]["annotations"]["volcano.sh/job-version"]
    before = world.group["metadata"]["uid"]
    world.job = msgspec.structs.replace(world.job, status=msgspec.structs.replace(world.job.status, version=1))
    world.restart()
    world.settle()

    assert world.group is not None
    assert world.group["metadata"]["uid"] == before
