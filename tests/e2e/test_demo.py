"""The demo: with gangs all jobs end one after the other, without gangs they block each other."""

from __future__ import annotations

from volcano_py.local.demo import DemoOptions, DemoResult, Frame, run_demo
from volcano_py.local.workload import GPU_GANG, GPU_PODS, TRAINING_JOBS

TRAINING = [f"train-{number}" for number in range(TRAINING_JOBS)]


async def played(gang: bool) -> tuple[DemoResult, list[Frame]]:
    frames: list[Frame] = []
    result = await run_demo(DemoOptions(gang=gang, run_time_s=1.0, quiet_s=4.0, give_up_s=40.0), frames.append)
    return result, frames


async def test_with_gangs_all_jobs_end_and_no_job_is_placed_in_part() -> None:
    result, frames = await played(gang=True)

    assert sorted(result.ended) == TRAINING
    assert result.partly_placed == 0
    assert result.gpus_bound_before == 0
    assert "Insufficient nvidia.com/gpu" in result.why_gpu
    assert result.gpu_seconds is not None
    assert (result.pods, result.bindings) == (130, 130)
    phases = {job.name: {frame.jobs[index].phase for frame in frames} for index, job in enumerate(frames[0].jobs)}
    assert phases[GPU_GANG] == {"Pending", "Running"}
    assert all({"Pending", "Running"} <= phases[name] for name in TRAINING)
    last = {job.name: (job.ended, job.pods) for job in frames[-1].jobs if job.name in TRAINING}
    assert all(ended == pods for ended, pods in last.values()), "the picture that stays does not show the end"


async def test_without_gangs_jobs_hold_parts_and_block_each_other() -> None:
    result, _ = await played(gang=False)

    # On a slow machine, the first job may have all of its pods before the pods of the others exist, and the last two
    # none: those in between have taken what is left.
    assert result.ended in ([], TRAINING[:1])
    blocked = {*result.ended, *(job.name for job in result.stuck)}
    assert blocked <= set(TRAINING)
    assert len(blocked) >= len(TRAINING) - 2
    assert all(0 < job.placed < job.minimum for job in result.stuck)
    assert result.gpus_bound_before == GPU_PODS - 1
