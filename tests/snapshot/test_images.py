"""Images of nodes change all the time, and change little of a snapshot."""

from dataclasses import replace

from tests.reference.world import World, a_node
from volcano_py.snapshot.store import ClusterStore


def a_store() -> ClusterStore:
    return World(nodes=tuple(a_node(f"n{row}", labels={"zone": "a"}) for row in (2, 0, 1))).store()


def test_a_change_of_images_renews_record_and_version_but_rebuilds_nothing_else() -> None:
    store = a_store()
    before = store.snapshot().nodes.statics
    store.set_node(a_node("n1", labels={"zone": "a"}, images={"web:1": 5}))
    store.set_node(a_node("n1", labels={"zone": "a"}, images={"web:2": 6}))

    after = store.snapshot().nodes.statics

    assert [record.images for record in after.records] == [{}, {"web:2": 6}, {}]
    assert (after.versions != before.versions).tolist() == [False, True, False]
    assert after.labels is before.labels
    assert [record.images for record in before.records] == [{}, {}, {}]


def test_other_images_beside_other_changes_are_not_lost() -> None:
    store = a_store()
    store.snapshot()
    store.set_node(a_node("n1", labels={"zone": "a"}, images={"web:1": 5}))
    store.set_node(a_node("n2", labels={"zone": "b"}))
    store.remove_node("n0")

    statics = store.snapshot().nodes.statics

    assert [(record.name, dict(record.images)) for record in statics.records] == [("n1", {"web:1": 5}), ("n2", {})]
    assert statics.labels["zone"].values[statics.labels["zone"].codes[1]] == "b"


def test_a_node_removed_after_a_change_of_images_is_gone() -> None:
    store = a_store()
    store.snapshot()
    store.set_node(replace(a_node("n1", labels={"zone": "a"}), images={"web:1": 5}))
    store.remove_node("n1")

    assert store.snapshot().nodes.statics.names == ("n0", "n2")
