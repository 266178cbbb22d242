"""Whose nomination a pod carries, read from its JSON."""

import msgspec
import pytest

from tests.cache.nominators import managed_fields
from volcano_py.api.core import Pod
from volcano_py.cache.field_managers import nominated_by_us
from volcano_py.cache.pods import task_record

DEEP = b'[{"manager": "x", "fieldsV1": {"f:metadata": ' + b'{"f:a":' * 5000 + b"{}" + b"}" * 5000 + b"}}]"


@pytest.mark.parametrize(
    ("recorded", "ours"),
    [
        pytest.param(b"", True, id="not-recorded"),
        pytest.param(b"null", True, id="null"),
        pytest.param(b"[]", True, id="nobody"),
        pytest.param(b'[{"manager": 5}]', True, id="unreadable"),
        pytest.param(DEEP, True, id="nested-deeply"),
        pytest.param(managed_fields("volcano-py"), True, id="us"),
        pytest.param(managed_fields("vc-scheduler"), True, id="our-predecessor"),
        pytest.param(managed_fields("before-first-apply"), True, id="written-before-it-was-recorded"),
        pytest.param(managed_fields("karpenter", field="f:phase"), True, id="another-program-wrote-another-field"),
        pytest.param(managed_fields("karpenter"), False, id="another-program"),
        pytest.param(managed_fields("volcano-py", "karpenter"), False, id="both"),
    ],
)
def test_a_nomination_is_ours_unless_another_program_wrote_it(recorded: bytes, ours: bool) -> None:
    assert nominated_by_us(msgspec.Raw(recorded)) is ours


@pytest.mark.parametrize("node", ["", "n1"])
@pytest.mark.parametrize("program", ["volcano-py", "karpenter"])
def test_a_pod_is_decoded_with_the_owner_of_its_nomination(node: str, program: str) -> None:
    fields = managed_fields(program).decode()
    wire = f'{{"metadata": {{"uid": "u", "managedFields": {fields}}}, "status": {{"nominatedNodeName": "{node}"}}}}'

    record = task_record(msgspec.json.decode(wire, type=Pod), ["volcano"])

    assert (record.nominated, record.nominated_by_us) == (node, not node or program == "volcano-py")
