"""The plugin `fake` of rows stands in for a victimTasks function; the row's note says which victims it returns."""

import re
from typing import Any, ClassVar

import numpy as np

from tests.conformance.row_files import Case
from volcano_py.framework.contract.extension_points import VictimTasks
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.model.arrays import Bools


class Fake(Plugin, VictimTasks):
    """Returns all running pods of one priority as victims."""

    name = "fake"
    priority: ClassVar[int | None] = None

    @classmethod
    def of(cls, case: Case) -> "type[Fake]":
        """Return the stand-in that the note of a row describes."""
        found = re.search(r"victims are all running pods of priority (-?\d+)", case.note)
        attributes: dict[str, Any] = {"priority": int(found[1]) if found else None}
        return type("FakeOfTheRow", (cls,), attributes)

    def victim_tasks(self, candidates: VictimCandidates) -> Bools:
        """Return the running tasks of that priority."""
        assert self.priority is not None, "the note of the row does not say which victims the plugin fake returns"
        return np.asarray(candidates.priorities == self.priority)
