"""Plugins that were written for the names of the last release."""

from typing import Any

import numpy as np
import pytest

from tests.framework.sessions import a_session
from tests.reference.world import World, a_job, a_node, a_shape, tasks_of
from volcano_py.framework import contract, evictables, extension, info, normalized
from volcano_py.framework import plugin as plugin_module
from volcano_py.framework.contract import Plugin, VictimCandidates, VictimFilter
from volcano_py.framework.retired import method
from volcano_py.model.statuses import TaskStatus

WORLD = World(
    nodes=(a_node("n1"),),
    jobs=(a_job("j"),),
    tasks=tasks_of("j", 1, a_shape(cpu=1), status=TaskStatus.RUNNING, node="n1"),
)


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        pytest.param(extension, "NodeOrder", "NodeOrder", id="extension"),
        pytest.param(extension, "Claim", "Preemptor", id="extension-renamed"),
        pytest.param(extension, "NeighbourPredicate", "InterPodPredicate", id="extension-renamed-point"),
        pytest.param(plugin_module, "Plugin", "Plugin", id="plugin"),
        pytest.param(evictables, "Evictables", "VictimCandidates", id="evictables"),
        pytest.param(info, "TaskInfo", "TaskInfo", id="info"),
        pytest.param(normalized, "NormalizedScore", "NormalizedScore", id="normalized"),
    ],
)
def test_an_old_module_gives_what_is_in_the_contract_now_with_a_warning(module: Any, old: str, new: str) -> None:
    with pytest.warns(FutureWarning, match=rf"{old} is now volcano_py\.framework\.contract\.{new}"):
        found = getattr(module, old)

    assert found is getattr(contract, new)


def test_a_name_that_never_was_in_an_old_module_is_an_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        _ = extension.Nonsense


def test_a_method_under_its_old_name_answers() -> None:
    with pytest.warns(FutureWarning, match=r"Old\.spared is now protected"):

        class Old(Plugin, VictimFilter):
            name = "old"
            counts = frozenset({"spared"})

            def spared(self, claim: Any, candidates: VictimCandidates) -> Any:
                return np.ones(len(candidates), dtype=bool)

    assert Old.counts == {"protected"}
    ssn = a_session(WORLD, Old())
    assert Old().protected(None, ssn.eviction.all).tolist() == [True]


def test_keys_of_equivalence_classes_under_their_old_name_count() -> None:
    with pytest.warns(FutureWarning, match=r"Old\.marks is now equivalence_keys"):

        class Old(Plugin):
            name = "old"

            def marks(self, ssn: Any) -> Any:
                return np.full(len(ssn.tasks.records), 3)

    task = a_session(WORLD, Old()).state.task_of(1)

    assert task.equivalence_key("old") == 3
    with pytest.warns(FutureWarning, match=r"TaskInfo\.mark is now equivalence_key"):
        assert task.mark("old") == 3


def test_attributes_of_the_session_under_their_old_names_are_found() -> None:
    state = a_session(WORLD).state

    with pytest.warns(FutureWarning, match=r"State\.requests is now classes\.requests"):
        assert state.requests is state.classes.requests
    with pytest.warns(FutureWarning, match=r"State\.id is now memory\.session_id"):
        assert state.id == state.memory.session_id
    with pytest.raises(AttributeError, match="'State' object has no attribute 'nonsense'"):
        _ = state.nonsense


def test_a_filter_whose_method_has_its_old_name_is_asked() -> None:
    class Filter:
        def hopeless(self) -> str:
            return "nowhere"

    with pytest.warns(FutureWarning, match=r"Filter\.hopeless is now unresolvable"):
        assert method(Filter(), "unresolvable", "hopeless")() == "nowhere"
