from tests.reference.world import World, a_job, a_node, a_shape, tasks_of
from tests.scheduler.running import cycle
from volcano_py.model.objects import QueueRecord
from volcano_py.model.statuses import TaskStatus

CONF = "actions: allocate\ntiers:\n- plugins:\n  - name: predicates\n"
ONE, GPU = a_shape(cpu=1), a_shape(cpu=1, gpu=1)


def test_the_allocation_of_a_queue_counts_for_all_ancestors() -> None:
    """Whatever the plugins make of parents; pods that wait or go do not count."""
    queues = [QueueRecord(name, parent=parent) for name, parent in (("root", ""), ("up", ""), ("a", "up"), ("b", "up"))]
    tasks = (
        *tasks_of("ja", 2, ONE, status=TaskStatus.RUNNING, node="n1"),
        *tasks_of("ja", 1, ONE, status=TaskStatus.RELEASING, node="n1", first=2),
        *tasks_of("jb", 1, GPU, status=TaskStatus.BOUND, node="n1"),
        *tasks_of("jlost", 1, ONE, status=TaskStatus.RUNNING, node="n1"),
        *tasks_of("jb", 1, a_shape(cpu=99), first=1),
    )
    jobs = (a_job("ja", queue="a"), a_job("jb", queue="b"), a_job("jlost", queue="lost"))
    lost = QueueRecord("lost", parent="nowhere")
    world = World((a_node("n1", cpu=16, gpu=2),), (*queues, lost, QueueRecord("idle")), jobs, tasks)

    held = cycle(world, CONF).report.queues_hold

    assert held == {
        "a": {"cpu": 2000.0, "pods": 2.0},
        "b": {"cpu": 1000.0, "pods": 1.0, "nvidia.com/gpu": 1000.0},
        "up": {"cpu": 3000.0, "pods": 3.0, "nvidia.com/gpu": 1000.0},
        "root": {"cpu": 3000.0, "pods": 3.0, "nvidia.com/gpu": 1000.0},
        "lost": {"cpu": 1000.0, "pods": 1.0},
        "idle": {},
    }


def test_binds_of_the_cycle_count() -> None:
    world = World((a_node("n1"),), jobs=(a_job("j"),), tasks=tasks_of("j", 2, ONE))

    assert cycle(world, CONF).report.queues_hold == {"default": {"cpu": 2000.0, "pods": 2.0}}
