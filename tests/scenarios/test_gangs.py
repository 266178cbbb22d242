"""Gangs: all or nothing, and nobody's room wasted. Every scenario settles: five more cycles change nothing."""

from collections.abc import Sequence

import pytest

from volcano_py.testing import Job, Scenario, a_job, a_node, run_scenario

WITHOUT_GANG = ("priority", "predicates", "nodeorder")


def test_a_gang_that_does_not_fit_leaves_room_for_one_that_does() -> None:
    result = run_scenario(
        nodes=[a_node("n1", cpu=4)],
        jobs=[a_job("big", tasks=6, cpu=1), a_job("small", tasks=2, cpu=1, created=1)],
    )

    assert result.placements == {"small-0": "n1", "small-1": "n1"}
    assert result.phases == {"big": "Inqueue", "small": "Running"}
    assert [reason.code for reason in result.why_not("big").reasons] == ["insufficient-cpu"]
    assert result.conditions["big-5"] == "0/1 nodes are unavailable: 1 Insufficient cpu."
    assert (
        result.conditions["big-0"] == "Pod default/big-0 can possibly be assigned to n1, once minAvailable is satisfied"
    )


def training(*numbers: int) -> list[Job]:
    """Return jobs of 2 parameter servers and 4 workers (case E1), all submitted at once."""
    return [a_job(f"tf{number}", tasks={"ps": 2, "worker": 4}, cpu=1) for number in numbers]


def run_to_the_end(scenario: Scenario, jobs: Sequence[str]) -> list[list[str]]:
    """Let jobs end as soon as all six pods run; return which ran together, round by round, until none is left."""
    history: list[list[str]] = []
    ended: set[str] = set()
    while len(ended) < len(jobs):
        result = scenario.run()
        running = {pod.rsplit("-", 2)[0] for pod in result.placements} - ended
        whole = sorted(job for job in running if sum(pod.startswith(f"{job}-") for pod in result.placements) == 6)
        if not whole:
            break
        history.append(whole)
        scenario.finish(*whole)
        ended.update(whole)
    return history


NODES = [a_node(f"n{index}", cpu=3) for index in range(3)]  # room for nine pods: one job and a half


@pytest.mark.parametrize("count", [1, 2, 5])
def test_e1_with_gang_every_job_ends_and_only_whole_jobs_run(count: int) -> None:
    names = [f"tf{number}" for number in range(count)]
    scenario = Scenario(*NODES, *training(*range(count)))

    history = run_to_the_end(scenario, names)

    assert history == [[name] for name in names]
    result = scenario.run()
    assert result.phases == dict.fromkeys(names, "Completed")
    assert result.waiting() == []
    assert len(result.placements) == 6 * count


def test_e1_a_single_job_runs_the_same_without_gang() -> None:
    with_gang = run_scenario(nodes=NODES, jobs=training(0))
    without = run_scenario(nodes=NODES, jobs=training(0), plugins=WITHOUT_GANG)

    assert with_gang.placements == without.placements
    assert len(with_gang.batches) == 1
    assert len(without.batches) == 6


def test_e1_without_gang_two_jobs_waste_room() -> None:
    result = run_scenario(nodes=NODES, jobs=training(0, 1), plugins=WITHOUT_GANG)

    per_job = {job: sum(pod.startswith(job) for pod in result.placements) for job in ("tf0", "tf1")}
    assert sum(per_job.values()) == 9
    assert 0 < min(per_job.values()) < 6, "a part of a job holds room that it cannot use"


def test_e1_without_gang_five_jobs_deadlock_if_their_pods_arrive_interleaved() -> None:
    """Pods of all jobs arrive in turn and each is placed as it comes: every job holds a part and none can run."""
    jobs = training(*range(5))
    scenario = Scenario(*NODES, *(job.group for job in jobs), plugins=WITHOUT_GANG)
    for pods in zip(*(job.pods for job in jobs), strict=True):
        scenario.add(*pods)
        result = scenario.run()

    held = sorted(sum(pod.startswith(f"tf{number}-") for pod in result.placements) for number in range(5))
    assert held == [1, 2, 2, 2, 2]
    assert run_to_the_end(scenario, [f"tf{number}" for number in range(5)]) == []


def test_e1_with_gang_interleaved_pods_do_not_deadlock() -> None:
    jobs = training(*range(5))
    scenario = Scenario(*NODES, *(job.group for job in jobs))
    for pods in zip(*(job.pods for job in jobs), strict=True):
        scenario.add(*pods)
        scenario.run()

    assert len(run_to_the_end(scenario, [f"tf{number}" for number in range(5)])) == 5


def test_a1_a_hundred_pods_wait_for_the_hundredth_gpu() -> None:
    nodes = [a_node(f"n{index:02}", cpu=64, gpu=9) for index in range(11)]
    scenario = Scenario(*nodes, a_job("train", tasks=100, cpu="100m", gpu=1))
    before = scenario.run()

    assert before.placements == {}
    assert before.phases == {"train": "Inqueue"}
    why = before.conditions["train-99"]
    assert why == "0/11 nodes are unavailable: 11 Insufficient nvidia.com/gpu."

    scenario.add(a_node("n99", gpu=1))
    after = scenario.run()

    assert len(after.placements) == 100
    assert [len(batch) for batch in after.batches] == [100]
    assert after.phases == {"train": "Running"}


def test_a_gang_waits_for_pods_that_a_quota_delays() -> None:
    job = a_job("j", tasks=4, cpu=1)
    scenario = Scenario(a_node("n1", cpu=8), job.group, *job.pods[:3])
    before = scenario.run()

    assert before.placements == {}
    assert "Not enough valid tasks for gang-scheduling, valid: 3, min: 4" in before.why_not("j").message

    scenario.add(job.pods[3])
    assert len(scenario.run().placements) == 4


def test_a_recreated_pod_of_a_running_gang_is_placed_alone() -> None:
    job = a_job("j", tasks=3, cpu=1)
    scenario = Scenario(a_node("n1", cpu=3), job)
    assert len(scenario.run().placements) == 3

    scenario.delete("j-1")
    scenario.add(job.pods[1])
    result = scenario.run()

    assert result.batches == [["j-0", "j-1", "j-2"], ["j-1"]]


def test_beyond_its_minimum_a_job_gets_as_many_tasks_as_fit() -> None:
    scenario = Scenario(a_node("n1", cpu=5), a_job("j", tasks=8, min_available=3, cpu=1))
    result = scenario.run()

    assert result.batches == [["j-0", "j-1", "j-2"], ["j-3"], ["j-4"]]
    assert result.phases == {"j": "Running"}
    assert result.conditions["j-7"] == "0/1 nodes are unavailable: 1 Insufficient cpu."

    scenario.add(a_node("n2", cpu=2))
    assert len(scenario.run().placements) == 7


def test_two_elastic_jobs_both_get_their_minimum_before_either_gets_more() -> None:
    result = run_scenario(
        nodes=[a_node("n1", cpu=7)],
        jobs=[
            a_job("a", tasks=6, min_available=2, cpu=1),
            a_job("b", tasks=6, min_available=2, cpu=1, created=1),
        ],
    )

    assert result.batches[:2] == [["a-0", "a-1"], ["b-0", "b-1"]]
    assert len(result.placements) == 7


def spark(**options: object) -> Job:
    return a_job("s", tasks={"driver": 1, "executor": 3}, min_available=2, cpu=1, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"min_task_member": {"driver": 1, "executor": 1}}, id="by-role-minimums"),
        pytest.param({}, id="by-order-of-names"),
    ],
)
def test_with_room_for_two_the_driver_and_one_executor_run(options: dict[str, object]) -> None:
    result = run_scenario(nodes=[a_node("n1", cpu=2)], jobs=[spark(**options)])

    assert sorted(result.placements) == ["s-driver-0", "s-executor-0"]


def test_two_executors_never_run_without_the_driver() -> None:
    """The driver fits nowhere; the number two could be made up of executors, but the role's minimum says no."""
    job = spark(min_task_member={"driver": 1, "executor": 1})
    driver = a_job("s", tasks={"driver": 1}, cpu=4).pods[0]
    scenario = Scenario(a_node("n1", cpu=3), job.group, driver, *job.pods[1:])
    result = scenario.run()

    assert result.placements == {}
    assert result.conditions["s-driver-0"] == "0/1 nodes are unavailable: 1 Insufficient cpu."

    scenario.add(a_node("n2", cpu=4))
    assert sorted(scenario.run().placements) == ["s-driver-0", "s-executor-0", "s-executor-1", "s-executor-2"]


def test_a_driver_of_higher_priority_goes_first() -> None:
    job = spark()
    driver = a_job("s", tasks={"driver": 1}, cpu=1, priority=100, created=50).pods[0]
    result = run_scenario(
        nodes=[a_node("n1", cpu=2)], groups=[job.group], pods=[*job.pods[1:], driver], plugins=["priority", "gang"]
    )

    assert result.batches == [["s-driver-0", "s-executor-0"]]


def test_a_task_is_pipelined_onto_terminating_pods_and_bound_once_they_are_gone() -> None:
    scenario = Scenario(a_node("n1", cpu=4), a_job("old", tasks=2, cpu=2))
    scenario.run()
    scenario.terminate("old")
    scenario.add(a_job("new", tasks=4, cpu=1, created=1), a_job("late", tasks=1, cpu=1, created=2))
    waiting = scenario.run()

    assert set(waiting.placements) == {"old-0", "old-1"}
    promise = "can possibly be assigned to n1, once resource is released and minAvailable is satisfied"
    assert waiting.conditions["new-0"] == f"Pod default/new-0 {promise}"
    assert waiting.conditions["late-0"] == "0/1 nodes are unavailable: 1 Insufficient cpu.", "it is promised to new"

    scenario.delete("old")
    done = scenario.run()

    assert done.batches[-1] == ["new-0", "new-1", "new-2", "new-3"]
    assert done.waiting() == ["late"]


def test_a_gang_that_waits_for_terminating_pods_keeps_idle_resources_reserved() -> None:
    scenario = Scenario(a_node("n1", cpu=2), a_node("n2", cpu=1), a_job("old", cpu=2))
    assert scenario.run().placements == {"old-0": "n1"}
    scenario.terminate("old")
    scenario.add(a_job("gang", tasks=2, cpu=1, created=1), a_job("single", cpu=1, created=2))
    result = scenario.run()

    assert set(result.placements) == {"old-0"}
    assert result.conditions["gang-0"].endswith("assigned to n2, once minAvailable is satisfied")
    assert result.conditions["gang-1"].endswith("once resource is released and minAvailable is satisfied")
