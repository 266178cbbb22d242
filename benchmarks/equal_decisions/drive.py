"""Run cases in the version of volcano_py that is installed here: one case per line in, one line of decisions out.

Executed by its path, also in an environment that knows nothing of this package. Objects are plain JSON all the time:
what a cycle decides is written into it as a cluster would, and a watch tells the cache.
"""

import argparse
import json
import os
import random
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

try:
    from benchmarks.equal_decisions import surface
    from benchmarks.equal_decisions.plain import merged, name_of, plain
except ImportError:  # executed by its path: its own directory is the first that is looked into
    import surface
    from plain import merged, name_of, plain

Json = dict[str, Any]
Key = tuple[str, str, str]  # kind, namespace, name

_DECODERS = {kind: msgspec.json.Decoder(type_) for kind, type_ in surface.KINDS.items()}
_GATE = "scheduling.volcano.sh/queue-allocation-gate"
_REPORTED = (
    *("tasks_placed", "jobs_committed", "jobs_discarded", "jobs_enqueued", "jobs_refused", "pending_tasks", "tells_in"),
    *("preemption_attempts", "jobs", "queues", "queues_hold", "queue_problems", "job_shares", "failures"),
)
"""What of a report does not depend on how fast the machine is."""


class World:
    """The objects of one case as JSON, and the cache that hears of them."""

    def __init__(self, case: Json) -> None:
        self._options: Json = case["options"]
        self._start = self.now = float(case["start"])  # seconds since the epoch
        self._cycle = 0
        self._objects: dict[Key, Json] = {}
        self._late: list[tuple[int, Key]] = []  # changes that the watch shows from a cycle on
        self._leaving: dict[Key, tuple[int, bool]] = {}  # cycle that does not see it any more; whether it comes back
        self._starting: dict[Key, int] = {}  # cycle that sees it running
        self._made = 0
        self.cache = surface.ClusterCache(
            clock=self,  # type: ignore[arg-type]  # it never sleeps
            rng=random.Random(case["seed"]),
            queue_admission=self._options["queue_admission"],
        )
        self._binds, self._evictions, self._nominations = surface.parts(self.cache)
        if self._options["shard"] is not None:
            self.cache.use_shard(self._options["shard"], strict=self._options["strict_shard"])
        for obj in case["objects"]:
            self._put(obj)

    def monotonic(self) -> float:
        """Return the seconds since the beginning."""
        return self.now - self._start

    def advance(self, script: Json) -> None:
        """Let time pass until the next cycle: what was under way arrives, then what the script says happens."""
        self._cycle += 1
        self.now += script["wait"]
        for key in [key for key, (cycle, _) in self._leaving.items() if cycle <= self._cycle]:
            self._end(key, comes_back=self._leaving.pop(key)[1])
        for key in [key for key, cycle in self._starting.items() if cycle <= self._cycle]:
            del self._starting[key]
            self._patch(key, {"status": {"phase": "Running", "startTime": self._time()}})
        due, self._late = [k for c, k in self._late if c <= self._cycle], [e for e in self._late if e[0] > self._cycle]
        for key in due:
            if key in self._objects:
                surface.feeding.modified(self.cache, _decoded(self._objects[key]))
        for change in script["changes"]:
            self.change(change)
        if script["loads"] is not None:
            loads = {
                n: surface.NodeLoad(cpu, mem, self.now - age) for n, (cpu, mem, age) in script["loads"]["nodes"].items()
            }
            self.cache.measured(loads, script["loads"]["interval"])

    def carry_out(self, batch: tuple[Any, ...], token: Any, script: Json) -> Iterator[Json]:
        """Do what one batch decided, as the daemon would; yield what the cache objects to or writes otherwise."""
        of_kind: dict[str, list[Any]] = {}
        for decision in batch:
            of_kind.setdefault(name_of(decision), []).append(decision)
        objections = list(self._evict(of_kind, token, script))
        yield from objections
        binds = () if objections else tuple(of_kind.get("Bind", ()))
        for answer in self._binds.assume(binds, token) if binds else ():
            task = answer.bind.task
            if hasattr(answer, "reason"):
                yield {"refused": task.uid, "message": answer.reason}
            elif self._fails(script["bind_fails"]):
                self._binds.sent(task)
                self._binds.failed(task, "refused by the API server")
            else:
                self._binds.acknowledged(task)
                self._bind(("Pod", task.namespace, task.name), answer.bind.node)
        for decision in batch:
            written = self.cache.to_write(decision)
            if written is not decision:
                yield {"written": plain(written)}
            if written is not None:
                self._write(written)

    def _evict(self, of_kind: Mapping[str, list[Any]], token: Any, script: Json) -> Iterator[Json]:
        evictions, nominations = of_kind.get("Evict", []), of_kind.get("Nominate", [])
        together = tuple(one for one in evictions if one.beneficiary is not None)
        plans = [surface.Plan((one,)) for one in evictions if one.beneficiary is None]
        for plan in [surface.Plan(together, tuple(nominations)), *plans] if together else plans:
            objection = self._evictions.objection(plan, token)
            if objection:
                yield {"objection": [one.task.uid for one in plan.evictions], "message": objection}
                continue
            self._evictions.assume(plan.evictions)
            self._nominate(plan.nominations)
            for evict in plan.evictions:
                key = ("Pod", evict.task.namespace, evict.task.name)
                if self._fails(script["evict_fails"]):
                    self._evictions.failed(evict.task, "refused by the API server")
                else:
                    self._evictions.acknowledged(evict.task)
                    self._leave(key, comes_back=True)
        if not evictions:
            self._nominate(nominations)

    def _fails(self, every: int) -> bool:
        """Say whether the API server refuses this request: every so many-th, none for 0."""
        self._made += 1
        return bool(every) and self._made % every == 0

    def _bind(self, key: Key, node: str) -> None:
        status: Json = {"phase": "Running", "startTime": self._time(), "nominatedNodeName": None}
        if self._options["starts_in"]:
            status = {"nominatedNodeName": None}
            self._starting[key] = self._cycle + 1 + self._options["starts_in"]
        status["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": self._time()}]
        self._patch(key, {"spec": {"nodeName": node}, "status": status}, late=self._options["binds_late"])

    def _nominate(self, nominations: Any) -> None:
        for one in nominations:
            key = ("Pod", one.task.namespace, one.task.name)
            if self._nominations.assume(one) and key in self._objects:
                self._patch(key, {"status": {"nominatedNodeName": one.node}}, late=self._options["binds_late"])

    def _write(self, decision: Any) -> None:
        kind = name_of(decision)
        late = self._options["statuses_late"]
        about = (
            ("PodGroup", *decision.job) if kind == "SetPodGroupStatus" else ("Pod", *getattr(decision, "task", ())[:2])
        )
        if about not in self._objects:
            return
        status = self._objects[about].get("status", {})
        if kind == "SetPodGroupStatus":
            conditions = {one["type"]: one for one in status.get("conditions", [])}
            for new in decision.conditions:
                texts = {"reason": new.reason, "message": new.message, "transitionID": new.transition_id}
                conditions[new.type] = {"type": new.type, "status": str(bool(new.status)), **texts}
            counts = {name: getattr(decision, name) for name in ("phase", "running", "succeeded", "failed")}
            self._patch(about, {"status": {**counts, "conditions": list(conditions.values())}}, late=late)
        elif kind == "SetPodCondition" and "nodeName" not in self._objects[about]["spec"]:
            texts = {"reason": decision.reason, "message": decision.message}
            condition = {"type": "PodScheduled", "status": "False", **texts}
            self._patch(about, {"status": {"conditions": [condition]}}, late=late)
        elif kind == "LiftGate":
            gates = [one for one in self._objects[about]["spec"].get("schedulingGates", []) if one["name"] != _GATE]
            annotations = {"annotations": {_GATE: "true"}}
            self._patch(about, {"metadata": annotations, "spec": {"schedulingGates": gates}}, late=late)

    # Objects

    def change(self, change: Json) -> None:
        """Do what the script says."""
        if change["do"] == "put":
            self._put(change["object"])
            return
        key = (change["kind"], change["namespace"], change["name"])
        if key not in self._objects:
            return
        standing = "nodeName" in self._objects[key].get("spec", {})
        if change["do"] == "patch":
            if change.get("standing", standing) == standing:
                self._patch(key, change["patch"])
        elif change["do"] == "leave" and standing:
            self._leave(key, comes_back=False)
        else:
            self._end(key, comes_back=False)

    def _put(self, obj: Json) -> None:
        key = _key(obj)
        before = self._objects.get(key)
        if before is not None and before["metadata"].get("uid") != obj["metadata"].get("uid"):
            self._end(key, comes_back=False)
            before = None
        self._objects[key] = obj
        (surface.feeding.added if before is None else surface.feeding.modified)(self.cache, _decoded(obj))

    def _patch(self, key: Key, patch: Json, *, late: int = 0) -> None:
        if key not in self._objects:
            return
        self._objects[key] = merged(self._objects[key], patch)
        if late:
            self._late.append((self._cycle + 1 + late, key))
        else:
            surface.feeding.modified(self.cache, _decoded(self._objects[key]))

    def _leave(self, key: Key, *, comes_back: bool) -> None:
        """Let a pod terminate for a while."""
        self._starting.pop(key, None)
        self._leaving[key] = (self._cycle + 1 + self._options["grace"], comes_back)
        self._patch(key, {"metadata": {"deletionTimestamp": self._time()}})

    def _end(self, key: Key, *, comes_back: bool) -> None:
        obj = self._objects.pop(key, None)
        self._leaving.pop(key, None)
        self._starting.pop(key, None)
        if obj is None:
            return
        surface.feeding.deleted(self.cache, _decoded(obj))
        if comes_back:  # made anew by its owner: another uid, no node, no history
            self._made += 1
            uid = f"{obj['metadata']['uid'].partition('+')[0]}+{self._made}"
            metadata = {"uid": uid, "creationTimestamp": self._time(), "deletionTimestamp": None}
            fresh = merged(obj, {"metadata": metadata, "spec": {"nodeName": None}, "status": None})
            self._put({**fresh, "status": {"phase": "Pending"}})

    def _time(self) -> str:
        return datetime.fromtimestamp(self.now, UTC).isoformat()


def run_case(case: Json) -> Json:
    """Return what every cycle of a case decided and reported."""
    policy = surface.resolve(surface.parse_conf(case["conf"], "conf"), surface.POLICIES)
    world, memory, cycles = World(case), surface.Memory(lineage="case"), list[Json]()
    for script in case["cycles"]:
        world.advance(script)
        token, snapshot = world.cache.token, world.cache.snapshot()
        batches: list[tuple[Any, ...]] = []
        found: Json = {}
        try:
            clock = surface.CycleClock(world.now, utc_offset=case["options"]["utc_offset"])
            memory, report = surface.run_cycle(snapshot, policy, clock, case["options"]["seed"], memory, batches.append)
            found["report"] = {name: plain(getattr(report, name)) for name in _REPORTED}
        except Exception as error:  # noqa: BLE001 - what a version raises is what is compared
            found["raised"] = f"{type(error).__name__}: {error}"
        for change in script["meanwhile"]:
            world.change(change)
        found["decisions"] = [[plain(decision) for decision in batch] for batch in batches]
        found["answers"] = [answer for batch in batches for answer in world.carry_out(batch, token, script)]
        cycles.append(found)
    world.cache.validate()
    return {"seed": case["seed"], "warnings": list(policy.warnings), "cycles": cycles}


def _decoded(obj: Json) -> Any:
    return _DECODERS[obj["kind"]].decode(msgspec.json.encode(obj))


def _key(obj: Json) -> Key:
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def main() -> None:
    """Answer every line of the input with one line; with --where say only which package this is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--where", action="store_true", help="print which volcano_py runs here, and nothing else")
    out = sys.stdout
    if parser.parse_args().where:
        print(json.dumps({"file": surface.volcano_py.__file__, "hash_seed": os.environ.get("PYTHONHASHSEED", "")}))
        return
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - logs go there until the end of the process
    for line in sys.stdin:
        print(json.dumps(run_case(json.loads(line)), sort_keys=True, separators=(",", ":")), file=out, flush=True)


if __name__ == "__main__":
    main()
