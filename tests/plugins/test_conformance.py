import pytest

from tests.framework.sessions import a_session
from tests.reference.world import World
from volcano_py.plugins.conformance import Conformance, protected


@pytest.mark.parametrize(
    ("namespace", "priority_class", "expected"),
    [
        ("kube-system", "", True),
        ("default", "system-cluster-critical", True),
        ("default", "system-node-critical", True),
        ("default", "system-important", False),
        ("kube-system-2", "", False),
    ],
)
def test_pods_that_the_cluster_depends_on_are_protected(namespace: str, priority_class: str, expected: bool) -> None:
    assert protected(namespace, priority_class) is expected


def test_the_plugin_runs_in_a_session() -> None:
    assert [plugin.name for plugin in a_session(World(), Conformance()).plugins()] == ["conformance"]
