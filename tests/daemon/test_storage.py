"""Which nodes reach a volume: the answer for one node is the answer of the columns for all."""

from hypothesis import given
from hypothesis import strategies as st

from volcano_py.daemon.storage import is_reachable
from volcano_py.model.objects import NodeRecord
from volcano_py.model.shape import NodeTerm, Requirement
from volcano_py.model.volumes import VolumeRecord
from volcano_py.snapshot.node_terms import term_matches
from volcano_py.snapshot.store import ClusterStore

KEYS = ("zone", "disk", "cores")
VALUES = ("a", "b", "4", "12", "")
labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
expressions = st.builds(
    Requirement,
    st.sampled_from((*KEYS, "not a key")),
    st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near")),
    st.lists(st.sampled_from(VALUES), max_size=2).map(tuple),
)
fields = st.builds(
    Requirement,
    st.sampled_from(("metadata.name", "metadata.uid")),
    st.sampled_from(("In", "NotIn", "Exists")),
    st.lists(st.sampled_from(("n0", "n1", "")), max_size=2).map(tuple),
)
terms = st.builds(NodeTerm, st.lists(expressions, max_size=2).map(tuple), st.lists(fields, max_size=1).map(tuple))


@given(st.lists(labels, min_size=1, max_size=4), st.lists(terms, max_size=3).map(tuple))
def test_one_node_is_judged_as_all_nodes_are(nodes: list[dict[str, str]], affinity: tuple[NodeTerm, ...]) -> None:
    records = [NodeRecord(f"n{number}", labels=found) for number, found in enumerate(nodes)]
    store = ClusterStore()
    for record in records:
        store.nodes.set(record)
    columns = store.snapshot().nodes
    masks = [term_matches(term, columns) for term in affinity]

    for record in records:
        row = columns.statics.row_of[record.name]
        assert is_reachable(VolumeRecord("v", node_affinity=affinity), record) == any(mask[row] for mask in masks)


def test_a_volume_without_affinity_is_reached_by_all() -> None:
    assert is_reachable(VolumeRecord("v"), NodeRecord("n"))
    assert not is_reachable(VolumeRecord("v", node_affinity=()), NodeRecord("n"))
