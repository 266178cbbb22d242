"""Bodies in protobuf: written here by hand, field by field, as a Go client writes them."""

from __future__ import annotations

import pytest

from tests.apiserver.support import Client
from volcano_py.apiserver.protobuf.decoding import MEDIA_TYPE, ProtobufError, decode_object


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value % (1 << 64))


def block(field: int, data: bytes | str) -> bytes:
    raw = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + block(1, block(1, api_version) + block(2, kind)) + block(2, raw)


def metadata(name: str, *more: bytes) -> bytes:
    return block(1, b"".join((block(1, name), block(2, ""), block(3, ""), *more)))


def test_a_secret_keeps_its_bytes() -> None:
    label = block(11, block(1, "app") + block(2, "x"))
    raw = metadata("s", label) + block(2, block(1, "k") + block(2, b"\x00\xff")) + block(3, "Opaque")
    assert decode_object(envelope("v1", "Secret", raw)) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s", "labels": {"app": "x"}},
        "data": {"k": "AP8="},
        "type": "Opaque",
    }


def test_zero_is_kept_where_it_differs_from_absent() -> None:
    spec = number(1, 0) + number(5, 0) + number(7, 0)  # replicas, minReadySeconds, paused
    obj = decode_object(envelope("apps/v1", "Deployment", metadata("d") + block(2, spec)))
    assert obj["spec"] == {"replicas": 0}


def test_times_quantities_and_inline_fields_are_written_as_json_writes_them() -> None:
    claim = block(1, block(1, "cpu") + block(2, block(1, "500m")))
    quota = decode_object(envelope("v1", "ResourceQuota", metadata("q") + block(2, claim)))
    assert quota["spec"] == {"hard": {"cpu": "500m"}}
    born = block(8, number(1, 86400))
    namespace = decode_object(envelope("v1", "Namespace", metadata("n", born)))
    assert namespace["metadata"]["creationTimestamp"] == "1970-01-02T00:00:00Z"
    volume = block(1, block(1, "v") + block(2, block(2, block(1, ""))))
    pod = decode_object(envelope("v1", "Pod", metadata("p") + block(2, volume)))
    assert pod["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]


def test_negative_numbers_and_int_or_string() -> None:
    budget = block(1, number(1, 1) + number(2, 0) + block(3, "50%"))
    obj = decode_object(envelope("policy/v1", "PodDisruptionBudget", metadata("b") + block(2, budget)))
    assert obj["spec"] == {"minAvailable": "50%"}
    value = decode_object(envelope("scheduling.k8s.io/v1", "PriorityClass", metadata("c") + number(2, -5)))
    assert value["value"] == -5


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param(b"{}", "does not begin", id="no-magic"),
        pytest.param(envelope("v1", "Nonsense", b""), "send JSON", id="unknown-kind"),
        pytest.param(envelope("v1", "Namespace", number(99, 1)), "newer than this server", id="unknown-field"),
        pytest.param(envelope("v1", "Namespace", b"\x0a\x50abc"), "middle of a field", id="cut-off"),
        pytest.param(envelope("v1", "Namespace", b"\xff"), "middle of a number", id="cut-off-number"),
        pytest.param(envelope("v1", "Namespace", number(1, 5)), "a number where", id="wrong-type"),
        pytest.param(envelope("v1", "Namespace", block(1, block(1, b"\xff"))), "cannot be read", id="no-text"),
    ],
)
def test_what_cannot_be_read_says_why(body: bytes, why: str) -> None:
    with pytest.raises(ProtobufError, match=why):
        decode_object(body)


async def test_the_server_accepts_protobuf_and_answers_json(client: Client) -> None:
    url = f"{client.server.url}/api/v1/namespaces"
    headers = {"Content-Type": MEDIA_TYPE}
    async with client.session.post(url, data=envelope("v1", "Namespace", metadata("n")), headers=headers) as answer:
        assert (answer.status, (await answer.json())["metadata"]["name"]) == (201, "n")
    async with client.session.post(url, data=b"nonsense", headers=headers) as answer:
        assert (answer.status, (await answer.json())["reason"]) == (400, "BadRequest")
