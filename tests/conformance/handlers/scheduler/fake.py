"""The plugin `fake` of rows: a stand-in for a function that names victims; the row's note says whom."""

import re
from typing import Any, ClassVar

import numpy as np

from tests.conformance.row_files import Case
from volcano_py.framework.contract.extension_points import VictimTasks
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.model.arrays import Bools


class Fake(Plugin, VictimTasks):
    """Sends away all running pods of one priority."""

    name = "fake"
    priority: ClassVar[int | None] = None

    @classmethod
    def of(cls, case: Case) -> "type[Fake]":
        """Return the stand-in that the note of a row describes."""
        found = re.search(r"victims are all running pods of priority (-?\d+)", case.note)
        attributes: dict[str, Any] = {"priority": int(found[1]) if found else None}
        return type("FakeOfTheRow", (cls,), attributes)

    def victim_tasks(self, candidates: VictimCandidates) -> Bools:
        """Name them."""
        assert self.priority is not None, "the note of the row does not say whom the plugin fake names"
        return np.asarray(candidates.priorities == self.priority)
