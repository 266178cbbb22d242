"""What a run exercised: how often each plugin, action and kind of decision came up."""

import json
from collections import Counter
from collections.abc import Iterator

from benchmarks.equal_decisions.confs import ACTIONS, PLUGINS
from benchmarks.equal_decisions.draw import Json
from benchmarks.equal_decisions.generate import used


class Tally:
    """Counts over cases."""

    def __init__(self) -> None:
        self.cases = 0
        self.cycles = 0
        self.raised: list[str] = []  # seed, cycle and exception
        self.faults = 0  # reports of plugins that raised
        self.failures = 0  # those of them that are not about the plugin that is there to raise
        self.decisions: Counter[str] = Counter()
        self.evictions: Counter[str] = Counter()
        self.evicting: Counter[str] = Counter()  # cases in which an action evicts
        self.answers: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()  # cases in which a reason is given for a pod that waits
        self.configured: Counter[str] = Counter()  # cases of an action or plugin
        self.deciding: Counter[str] = Counter()  # those of them in which something is bound, evicted or promised

    def add(self, case: Json, line: str) -> None:
        """Count one case by what was printed about it."""
        result = json.loads(line)
        actions, plugins = used(case["conf"])
        self.cases += 1
        kinds, evicting, reasons = set[str](), set[str](), set[str]()
        for number, cycle in enumerate(result["cycles"], 1):
            self.cycles += 1
            if "raised" in cycle:
                self.raised.append(f"seed {case['seed']}, cycle {number}: {cycle['raised']}")
            report = cycle.get("report", {})
            failures = report.get("failures", ())
            self.faults += len(failures)
            self.failures += sum(not text.startswith("plugin faulty ") for text in failures)
            reasons.update(_reasons(report.get("jobs", {})))
            self.answers.update(next(iter(sorted(answer.keys() - {"message"}))) for answer in cycle["answers"])
            for decision in (one for batch in cycle["decisions"] for one in batch):
                kinds.add(decision["is"])
                self.decisions[decision["is"]] += 1
                if decision["is"] == "Evict":
                    evicting.add(decision["action"])
                    self.evictions[f"{decision['action']}, {_for_whom(decision)}"] += 1
        self.evicting.update(evicting)
        self.reasons.update(reasons)
        names = [*(f"action {name}" for name in actions), *(f"plugin {name}" for name in plugins)]
        self.configured.update(names)
        if kinds & {"Bind", "Evict", "Nominate"}:
            self.deciding.update(names)

    def lines(self) -> Iterator[str]:
        """Yield the table."""
        yield f"cases {self.cases}, cycles {self.cycles}, raised {len(self.raised)}"
        yield f"plugins failed {self.faults} times, {self.failures} of them not the one that is there to fail"
        yield from (f"  {text}" for text in self.raised[:20])
        yield from _block("decisions", self.decisions)
        yield from _block("evictions", self.evictions)
        yield from _block("cases with evictions of", self.evicting)
        yield from _block("answers of the cache", self.answers)
        yield "action or plugin: cases, and those with a bind, an eviction or a promise"
        for name in (*(f"action {one}" for one in ACTIONS), *(f"plugin {one}" for one in PLUGINS)):
            yield f"  {name:30}{self.configured[name]:7}{self.deciding[name]:7}"
        yield from _block("cases in which a pod waits because of", self.reasons)


def _block(title: str, counter: Counter[str]) -> Iterator[str]:
    yield title
    for name, count in sorted(counter.items(), key=lambda entry: (-entry[1], entry[0])):
        yield f"  {name:50}{count:7}"


def _for_whom(evict: Json) -> str:
    if evict["beneficiary"] is None:
        return "for nobody"
    return "for its own job" if evict["beneficiary"] == evict["job"] else "for another job"


def _reasons(jobs: Json) -> Iterator[str]:
    for report in jobs.values():
        for rejection in report["rejections"]:
            reasons = [refusal["reason"] for refusal in rejection["refusals"]]
            for reason in (*reasons, *([rejection["blocked"]] if rejection["blocked"] else [])):
                yield f"{reason['plugin']}: {reason['code']}"
