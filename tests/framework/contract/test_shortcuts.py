"""What a class says in advance about its answers does not hold for the other answers of a subclass."""

import numpy as np
import pytest

from volcano_py.framework.contract.extension_points import POINTS, JobStarving, JobValid
from volcano_py.model.rejections import Reason
from volcano_py.plugins.gang import Gang
from volcano_py.plugins.predicates import Predicates
from volcano_py.plugins.proportion import Proportion
from volcano_py.testing import a_job, a_node, a_queue, run_scenario


class Stricter(Gang):
    """Gang, but no job is valid."""

    name = "stricter"

    def job_valid(self, job):
        return Reason(self.name, "never", "not today")


class Alike(Gang):
    """Gang by another name."""

    name = "alike"


class Knows(Stricter):
    """It says again which jobs are valid."""

    name = "knows"

    def surely_valid(self):
        return np.zeros(len(self._ssn.jobs), dtype=bool)


class Refusing:
    """It refuses in place of the plugin that comes after it."""

    def job_valid(self, job):
        return Reason("mixed", "never", "not today")


class Mixed(Refusing, Gang):
    """Gang with another answer from elsewhere."""

    name = "mixed"


class Moody(Predicates):
    """Predicates whose refusals may not stay."""

    name = "moody"

    def predicate(self, task, nodes):
        return np.zeros(len(nodes), dtype=np.int64)


def test_a_subclass_that_overrides_an_answer_does_not_inherit_its_shortcut():
    assert Stricter.surely_valid is JobValid.surely_valid
    assert Mixed.surely_valid is JobValid.surely_valid
    assert Moody.refusals_stay is False


class ByLastName(Proportion):
    """Proportion, but the queue whose name is last goes first."""

    name = "by-last-name"

    def queue_order(self, left, right):
        return -1.0 if left.name > right.name else 1.0


class OnlySmall(Predicates):
    """Predicates, but no node takes pods of two CPUs."""

    name = "only-small"

    def static_predicate(self, shape, nodes):
        verdicts = super().static_predicate(shape, nodes)
        return np.ones_like(verdicts) if dict(shape.request)["cpu"] >= 2000 else verdicts


class Lenient(Gang):
    """Gang, but other rules about victims of preemption."""

    name = "lenient"

    def preemptable(self, preemptor, candidates):
        return candidates


@pytest.mark.parametrize("queues", [2, 8])
def test_a_subclass_orders_queues_by_its_own_answer_however_many_there_are(queues: int):
    names = [f"q{number}" for number in range(queues)]
    result = run_scenario(
        nodes=[a_node(cpu=32, pods=1)],
        queues=[a_queue(name) for name in names],
        jobs=[a_job(f"j-{name}", tasks=1, cpu=1, queue=name) for name in names],
        plugins=["gang", "predicates", ByLastName],
    )

    assert list(result.placements) == [f"j-{names[-1]}-0"]


def test_shapes_that_only_a_subclass_tells_apart_do_not_share_verdicts():
    result = run_scenario(
        nodes=[a_node(cpu=8)],
        jobs=[a_job("a", tasks=1, cpu=1), a_job("b", tasks=1, cpu=2)],
        plugins=["gang", OnlySmall],
    )

    assert list(result.placements) == ["a-0"]


def test_what_a_subclass_answers_about_victims_does_not_count_as_the_answers_of_its_parent():
    assert Gang.counts == {"preemptable", "reclaimable", "unified_evictable"}
    assert Lenient.counts == type("Later", (Lenient,), {"name": "later"}).counts == Gang.counts - {"preemptable"}
    assert type("Own", (Lenient,), {"name": "own", "counts": frozenset({"preemptable"})}).counts == {"preemptable"}


def test_a_subclass_inherits_the_shortcuts_of_the_answers_that_it_inherits():
    assert Alike.surely_valid is Gang.surely_valid
    assert Stricter.starving_jobs is Gang.starving_jobs is not JobStarving.starving_jobs
    assert Predicates.refusals_stay is True


def test_a_subclass_may_have_a_shortcut_of_its_own():
    assert Knows.surely_valid is not JobValid.surely_valid
    assert type("Later", (Knows,), {"name": "later"}).surely_valid is Knows.surely_valid


@pytest.mark.parametrize("plugin", [Gang, Predicates, Proportion])
def test_built_in_plugins_keep_their_shortcuts(plugin):
    for point in POINTS:
        for shortcut in point.shortcuts:
            if issubclass(plugin, point) and shortcut in vars(plugin):
                assert getattr(plugin, shortcut) is not getattr(point, shortcut)


@pytest.mark.parametrize("plugin", [Stricter, Mixed])
def test_a_job_that_only_the_subclass_refuses_is_not_placed(plugin):
    result = run_scenario(nodes=[a_node()], jobs=[a_job("j", tasks=1)], plugins=[plugin, "predicates"])

    assert result.placements == {}
    assert "not today" in result.why_not("j").message
