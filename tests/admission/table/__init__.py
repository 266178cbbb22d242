"""Every rule of the webhooks once: an object that it refuses, with the sentence, and the nearest one that it takes.

Pure rules are asked about all of it without a cluster (`tests/admission/test_table.py`), and the same objects go to a
real API server (`tests/e2e/test_admission_rules.py`). Objects that a real API server never shows to a rule say why.
"""

from tests.admission.table.case import Case, Default
from tests.admission.table.defaults import DEFAULTS, RESOURCE_GROUPS
from tests.admission.table.jobs import JOB_CREATIONS, JOB_UPDATES
from tests.admission.table.others import OTHERS
from tests.admission.table.queues import QUEUE_CHANGES, QUEUE_CREATIONS, QUEUE_DELETIONS

__all__ = ["CASES", "DEFAULTS", "RESOURCE_GROUPS", "Case", "Default"]

CASES: dict[str, Case] = {
    f"{case.path} {case.operation}: {name}": case
    for cases in (JOB_CREATIONS, JOB_UPDATES, QUEUE_CREATIONS, QUEUE_CHANGES, QUEUE_DELETIONS, OTHERS)
    for name, case in cases.items()
}
"""By what they are about."""
