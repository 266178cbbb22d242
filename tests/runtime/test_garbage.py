"""Garbage is collected in small steps; the collector belongs to the whole process, so each test has its own."""

import subprocess
import sys

START = """
import gc, weakref
from volcano_py.runtime import garbage

class Node:
    def __init__(self):
        self.me = self

garbage.collect_in_small_steps()
"""


def run(script: str) -> None:
    subprocess.run([sys.executable, "-c", START + script], check=True, timeout=60)


def test_a_full_collection_looks_only_at_what_is_new() -> None:
    run("""
left = []
def note(phase, info):
    if phase == "start" and info["generation"] == 2:
        left.append(len(gc.get_objects()))
gc.callbacks.append(note)
held = [[[]] for _ in range(300_000)]
garbage.keep_what_is_there()
held += [[[]] for _ in range(300_000)]
assert len(left) > 10, left
assert max(left) < 60_000, left
assert gc.get_freeze_count() > 1_000_000
""")


def test_new_cycles_are_collected() -> None:
    run("""
garbage.keep_what_is_there()
seen = weakref.ref(Node())
assert seen() is not None
held = [[] for _ in range(100_000)]
assert seen() is None
""")


def test_cycles_of_frozen_objects_are_collected_once_much_has_come_since() -> None:
    run("""
node = Node()
seen = weakref.ref(node)
garbage.keep_what_is_there()
del node
held = [[] for _ in range(100_000)]
assert seen() is not None
held += [[] for _ in range(3_000_000)]
assert seen() is None
""")


def test_while_a_process_starts_nothing_is_looked_at_twice() -> None:
    run("""
garbage.collect_in_small_steps(starting=True)
looked_at = 0
def note(phase, info):
    global looked_at
    if phase == "start":
        looked_at += len(gc.get_objects())
gc.callbacks.insert(0, note)
held = [[] for _ in range(300_000)]
early = looked_at
garbage.keep_what_is_there()
looked_at = 0
held += [[] for _ in range(300_000)]
assert early < 400_000 < looked_at, (early, looked_at)
""")


def test_a_start_that_takes_long_stops_freezing_early() -> None:
    run("""
garbage.collect_in_small_steps(starting=True)
for _ in range(5_000_000 // 2):
    Node()
before = gc.get_freeze_count()
for _ in range(100_000):
    Node()
assert gc.get_freeze_count() - before < 10_000
""")
