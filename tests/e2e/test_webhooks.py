"""All webhooks with failurePolicy Fail on the real API server: bursts, renewal under load, kill, garbage."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import secrets
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import aiohttp
import pytest

from tests.controlplane.rest import ApiFailure
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane
from tests.e2e.freezing_proxy import FreezingProxy
from tests.e2e.webhooks import SECRET, Webhooks
from volcano_py.testing import a_group, a_pod, a_queue, manifest

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
DRY = "?dryRun=All"
MERGE = "application/merge-patch+json"
DENIED = "denied the request"
PATHS = ("/jobs/mutate", "/jobs/validate")
ROUNDS = 40  # of thirteen verdicts each, in two threads


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane, installed: object) -> ControlPlane:
    if not control_plane.owned:
        pytest.skip("webhooks of our own would decide about the objects of others")
    return control_plane


@pytest.fixture(scope="module")
def webhooks(plane: ControlPlane) -> Iterator[Webhooks]:
    hooks = Webhooks(plane, "--leader-elect=false", "--graceful-shutdown-time=2s")
    try:
        yield hooks.start().install()
    finally:
        hooks.uninstall()
        hooks.stop()
    assert "by RBAC" not in hooks.log()


def job(name: str, queue: str = "default", **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "main", "image": "busybox:1"}], "restartPolicy": "Never"}}
    tasks = [{"name": "worker", "replicas": 1, "template": template}]
    meta = {"name": name, "namespace": "default"}
    body = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": meta}
    return {**body, "spec": {"queue": queue, "tasks": tasks, **spec}}


def queue(name: str, **spec: Any) -> dict[str, Any]:
    return {**manifest(a_queue(name)), "spec": {"weight": 1, **spec}}


class Writer:
    """Writes whose outcome a test judges: "" or why the API server refused."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    def send(self, method: str, path: str, body: object = None, **how: Any) -> str:
        try:
            self._plane.request(method, path, body, **how)
        except ApiFailure as failure:
            return str(failure)
        return ""

    def create(self, body: dict[str, Any], path: str = JOBS, dry: bool = True) -> str:
        return self.send("POST", path + (DRY if dry else ""), body)

    def make_queue(self, name: str, **spec: Any) -> str:
        """Create a queue that is open."""
        return self.create(queue(name, **spec), QUEUES, dry=False) or self.set_state(name, "Open")

    def set_state(self, name: str, state: str) -> str:
        body = {"status": {"state": state}}
        return self.send("PATCH", f"{QUEUES}/{name}/status", body, content_type=MERGE)

    def delete_queue(self, name: str) -> str:
        return self.send("DELETE", f"{QUEUES}/{name}")


@pytest.fixture
def writer(plane: ControlPlane, webhooks: Webhooks) -> Writer:
    return Writer(plane)


@pytest.fixture
def own_queue(writer: Writer) -> Iterator[str]:
    name = f"q-{secrets.token_hex(3)}"
    assert writer.make_queue(name) == ""
    yield name
    writer.delete_queue(name)


def test_kubectl_shows_why_a_job_is_refused_and_defaults_those_it_accepts(
    plane: ControlPlane, webhooks: Webhooks, own_queue: str
) -> None:
    bad = job("bad", "nowhere", minAvailable=5)
    refused = plane.kubectl("create", "-f", "-", stdin=json.dumps(bad), check=False)
    good = plane.kubectl("create", "-f", "-", "-ojson", stdin=json.dumps(job("good", own_queue)))
    plane.request("DELETE", f"{JOBS}/good")

    assert refused.returncode == 1
    assert 'admission webhook "validatejob.volcano.sh" denied the request' in refused.stderr
    assert "unable to find job queue" in refused.stderr
    spec = json.loads(good.stdout)["spec"]
    assert (spec["minAvailable"], spec["maxRetry"], spec["tasks"][0]["minAvailable"]) == (1, 3, 1)
    assert spec["schedulerName"] == "volcano"


def test_every_kind_is_judged(writer: Writer, own_queue: str) -> None:
    flow = {"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": {"name": "f"}}
    cron = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "metadata": {"name": "c"}}
    node = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": "h"}}
    exact = {"type": "Node", "selector": {"exactMatch": {"name": "n"}}}
    steps = [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]
    budget = {"volcano.sh/jdb-min-available": "many"}
    one, group = manifest(a_pod("p", namespace="")), manifest(a_group("g", namespace="", queue=own_queue))
    asked: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        (JOBS, job("j", own_queue), job("j", own_queue, plugins={"nothing": []})),
        (QUEUES, queue("k"), queue("k", parent="nobody")),
        (GROUPS, group, manifest(a_group("g", namespace="", queue="nowhere"))),
        ("/api/v1/namespaces/default/pods", one, manifest(a_pod("p", namespace="", annotations=budget))),
        (
            "/apis/flow.volcano.sh/v1alpha1/namespaces/default/jobflows",
            {**flow, "spec": {"flows": steps, "jobRetainPolicy": "retain"}},
            {**flow, "spec": {"flows": steps[1:], "jobRetainPolicy": "retain"}},
        ),
        (
            "/apis/topology.volcano.sh/v1alpha1/hypernodes",
            {**node, "spec": {"tier": 1, "members": [exact]}},
            {**node, "spec": {"tier": 1, "members": [{**exact, "selector": {"regexMatch": {"pattern": "("}}}]}},
        ),
        (
            "/apis/batch.volcano.sh/v1alpha1/namespaces/default/cronjobs",
            {**cron, "spec": {"schedule": "@hourly", "jobTemplate": {"spec": job("x", own_queue)["spec"]}}},
            {**cron, "spec": {"schedule": "sometimes", "jobTemplate": {"spec": job("x", own_queue)["spec"]}}},
        ),
    ]

    verdicts = {path: (writer.create(good, path), writer.create(bad, path)) for path, good, bad in asked}

    assert {path: good for path, (good, _) in verdicts.items() if good} == {}
    assert {path: bad for path, (_, bad) in verdicts.items() if DENIED not in bad} == {}


def test_an_operator_that_writes_no_queue_leaves_a_group_in_the_queue_of_its_namespace(
    plane: ControlPlane, webhooks: Webhooks, own_queue: str
) -> None:
    annotations = {"scheduling.volcano.sh/queue-name": own_queue}
    body = {"metadata": {"name": f"team-{own_queue}", "annotations": annotations}}
    namespace = plane.request("POST", "/api/v1/namespaces", body)["metadata"]["name"]
    groups = f"{GROUPS.partition('/namespaces/')[0]}/namespaces/{namespace}/podgroups"
    made = plane.request("POST", groups, manifest(a_group("g", namespace="", queue="")))

    spec = {field: written for field, written in made["spec"].items() if field != "queue"}
    again = plane.request("PUT", f"{groups}/g", {**made, "spec": spec})
    other = plane.request("PATCH", f"{groups}/g", {"spec": {"queue": "elsewhere"}}, content_type=MERGE)
    plane.request("DELETE", f"{groups}/g")

    assert [one["spec"]["queue"] for one in (made, again, other)] == [own_queue, own_queue, "elsewhere"]


def bursts(writer: Writer, rounds: int) -> list[str]:
    """Change queues and use them without a pause, in two threads; return the wrong ones of 26 verdicts per round."""
    wrong: list[str] = []

    def expect(what: str, found: str, part: str = "") -> None:
        if bool(part) != bool(found) or part not in found:
            wrong.append(f"{what}: {found or 'accepted'}")

    def burst(index: int) -> None:
        for turn in range(rounds):
            name = f"burst-{index}-{secrets.token_hex(2) if turn % 2 else 'again'}"
            expect("create", writer.make_queue(name))
            expect("use", writer.create(job("a", name)))
            child = f"{name}-child"
            expect("create a child", writer.make_queue(child, parent=name))
            expect("use a parent", writer.create(job("a", name)), "leaf queue")
            expect("delete a parent", writer.delete_queue(name), DENIED)
            expect("use a child", writer.create(job("a", child)))
            expect("delete a child", writer.delete_queue(child))
            expect("close", writer.set_state(name, "Closed"))
            expect("use a closed one", writer.create(job("a", name)), "state")
            expect("open", writer.set_state(name, "Open"))
            expect("use an open one", writer.create(job("a", name)))
            expect("delete", writer.delete_queue(name))
            expect("use a deleted one", writer.create(job("a", name)), "unable to find job queue")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(burst, range(2)))
    return wrong


def test_queues_that_are_created_closed_and_deleted_in_bursts_are_never_judged_wrong(writer: Writer) -> None:
    assert bursts(writer, ROUNDS) == []


def test_two_replicas_judge_no_burst_wrong_and_believe_their_watches_otherwise(
    plane: ControlPlane, webhooks: Webhooks, writer: Writer, own_queue: str
) -> None:
    webhooks.stop()
    flags = ("--leader-elect=true", "--graceful-shutdown-time=2s")
    replicas = [Webhooks(plane, *flags), Webhooks(plane, *flags)]
    with FreezingProxy("127.0.0.1", *(replica.port for replica in replicas)) as proxy:
        try:
            for replica in replicas:
                replica.listen_behind(proxy.port).start()
            wait_until("API servers ask the replicas", replicas[0].injected, 20.0)
            wait_until("a job is accepted", lambda: not writer.create(job("a", own_queue)), 20.0)
            with load(writer, own_queue) as (failures, sent):
                wrong = bursts(writer, ROUNDS // 2)
            assert (wrong, dict(failures), sent() > 500) == ([], {}, True)
            believed = [confirmed(replica, "watch") for replica in replicas]
            assert min(believed) > 100, believed
            assert sum(believed) > sent() / 2
        finally:
            for replica in replicas:
                replica.stop()
            webhooks.start()
            wait_until("API servers ask the first process again", webhooks.injected, 20.0)


@contextlib.contextmanager
def load(writer: Writer, queue: str, threads: int = 4) -> Iterator[tuple[Counter[str], Callable[[], int]]]:
    """Create jobs (dry run) over and over while a block runs; yield what failed, and how many were sent."""
    failures: Counter[str] = Counter()
    ended, sent = threading.Event(), [0] * threads

    def work(index: int) -> None:
        while not ended.is_set():
            if problem := writer.create(job("load", queue)):
                failures[problem] += 1
            sent[index] += 1

    workers = [threading.Thread(target=work, args=(index,)) for index in range(threads)]
    for worker in workers:
        worker.start()
    try:
        yield failures, lambda: sum(sent)
    finally:
        ended.set()
        for worker in workers:
            worker.join(30)


def test_certificates_are_renewed_under_load_without_a_failed_request(
    plane: ControlPlane, webhooks: Webhooks, writer: Writer, own_queue: str
) -> None:
    short = Webhooks(plane, "--leader-elect=false", "--graceful-shutdown-time=2s", "--certificate-lifetime=30s")
    webhooks.stop()  # while it runs, it writes its Secret again
    plane.request("DELETE", SECRET)
    short.start()
    try:
        wait_until("API servers ask the other process", short.injected, 20.0)
        wait_until("a job is accepted", lambda: not writer.create(job("load", own_queue)), 20.0)
        first = short.certificate()
        with load(writer, own_queue) as (failures, sent):
            wait_until("another certificate", lambda: short.certificate() != first, 60.0)
            second = short.certificate()
            wait_until("a third certificate", lambda: short.certificate() != second, 60.0)
            time.sleep(1)
        assert (dict(failures), sent() > 100) == ({}, True)  # four are always under way
    finally:
        short.stop()
        webhooks.start()
        wait_until("API servers ask the first process again", webhooks.injected, 20.0)


def test_a_killed_process_comes_back_with_the_same_certificate(
    webhooks: Webhooks, writer: Writer, own_queue: str
) -> None:
    wait_until("a job is accepted", lambda: not writer.create(job("a", own_queue)), 20.0)
    before = webhooks.certificate()
    with load(writer, own_queue, threads=2) as (failures, sent):
        webhooks.kill()
        time.sleep(0.5)
        webhooks.start()
        wait_until("a job is accepted", lambda: not writer.create(job("a", own_queue)), 10.0)
        after = sent()
        wait_until("the load goes on", lambda: sent() > after + 50, 20.0)

    assert webhooks.certificate() == before
    assert all("failed calling webhook" in problem for problem in failures), failures
    assert DENIED in writer.create(job("a", "nowhere"))


def test_garbage_giant_and_half_sent_reviews_never_end_the_process(
    webhooks: Webhooks, writer: Writer, own_queue: str
) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    rng, pid = random.Random(3), webhooks.pid()
    head = "POST /jobs/validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
    payloads = [
        rng.randbytes(3000),
        head.format(20).encode() + b"{",
        head.format(10**12).encode() + b" " * 100_000,
        head.format(4 * 1024 * 1024).encode() + b"[" * 1_000_000,
        head.format(100_000).encode() + b"[" * 100_000,
        head.format(7).encode() + b"garbage",
        b"GET / HTTP/9.9\r\n\r\n",
        head.replace("Content-Length: {}", "Transfer-Encoding: chunked").encode() + b"zz\r\n",
    ]
    half_open = []
    with load(writer, own_queue, threads=2) as (failures, sent):
        for turn in range(80):
            with contextlib.suppress(OSError):
                connection = socket.create_connection(("127.0.0.1", webhooks.port), timeout=5)
                half_open.append(connection)
                if turn % 5:
                    connection = context.wrap_socket(connection)
                    half_open.append(connection)
                connection.sendall(payloads[turn % len(payloads)])
        before = sent()
        wait_until("the load goes on", lambda: sent() > before + 100, 30.0)
    for connection in half_open:
        connection.close()

    assert dict(failures) == {}
    assert webhooks.pid() == pid


def test_reviews_of_16_clients_are_cheap(plane: ControlPlane, webhooks: Webhooks, own_queue: str) -> None:
    """Reviews take milliseconds, and a queue that does not change is not read; there is room for a busy machine."""
    time.sleep(1.5)  # the process waits for a second before it believes its watch
    before, read_before = {path: answered(webhooks, path) for path in PATHS}, live_reads(webhooks)
    asyncio.run(_create(plane, own_queue, 1000, clients=16))

    for path in PATHS:
        seen = {edge: count - before[path][edge] for edge, count in answered(webhooks, path).items()}
        shares = {edge: seen[edge] / seen["+Inf"] for edge in ("0.005", "0.01", "0.025", "0.1")}
        print(f"{path}: " + ", ".join(f"{share:.1%} within {edge} s" for edge, share in shares.items()))
        assert seen["+Inf"] == 1000
        assert shares["0.01"] > 0.95
    assert live_reads(webhooks) - read_before < 200


async def _create(plane: ControlPlane, queue: str, count: int, *, clients: int) -> None:
    left = iter(range(count))

    async def work(session: aiohttp.ClientSession) -> None:
        for index in left:
            async with session.post(f"{plane.url}{JOBS}{DRY}", json=job(f"load-{index}", queue)) as answer:
                assert answer.status == 201, await answer.text()

    connector = aiohttp.TCPConnector(ssl=plane.ssl_context, limit=clients)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(work(session) for _ in range(clients)))


def answered(webhooks: Webhooks, path: str) -> Counter[str]:
    """Return how many reviews of a path were answered within each bucket."""
    name = "volcano_py_admission_review_seconds_bucket"
    found: Counter[str] = Counter()
    for labels, value in re.findall(rf"^{name}{{(.*)}} (.*)$", webhooks.metrics(), re.MULTILINE):
        if f'path="{path}"' in labels:
            (edge,) = re.findall(r'le="(.*?)"', labels)
            found[edge] += int(float(value))
    return found


def confirmed(webhooks: Webhooks, by: str) -> int:
    """Return how many verdicts were confirmed in a way."""
    (value,) = re.findall(
        rf'^volcano_py_admission_confirmations_total{{result="{by}"}} (.*)$', webhooks.metrics(), re.MULTILINE
    ) or ["0"]
    return int(float(value))


def live_reads(webhooks: Webhooks) -> int:
    """Return how many objects were read live."""
    lines = re.findall(r"^volcano_py_admission_live_reads_total{.*} (.*)$", webhooks.metrics(), re.MULTILINE)
    return sum(int(float(value)) for value in lines)
