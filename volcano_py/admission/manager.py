"""The webhook manager: it builds the server, its views and its certificate, and starts and stops them.

:mod:`volcano_py.process.lifecycle` says how the process starts and ends. Every replica answers reviews. The leader
alone makes certificates and writes what API servers trust into the webhook configurations; a replica that loses the
lease goes on answering.
"""

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import structlog
from prometheus_client import CollectorRegistry

import volcano_py
from volcano_py.admission.certificates import Pair, Unusable
from volcano_py.admission.changing_queues import ChangingQueues
from volcano_py.admission.confirmation import Judge, LiveReads
from volcano_py.admission.contract import Options, ResourceGroup, Rule
from volcano_py.admission.given_certificates import GivenCertificates
from volcano_py.admission.injection import REPEAT_S, Configuration, ConfigurationView, Injector
from volcano_py.admission.metrics import AdmissionMetrics
from volcano_py.admission.options import SECRET, WebhookOptions, read_groups, webhook_names
from volcano_py.admission.own_certificates import OwnCertificates, SecretObject
from volcano_py.admission.queue_guard import QUEUE_PATH, QueueGuard
from volcano_py.admission.queue_notes import QueueNotes
from volcano_py.admission.server import ReviewServer
from volcano_py.admission.serving import ServedCertificate
from volcano_py.admission.views import NamespaceObject, NamespaceView, QueueObject, QueueView
from volcano_py.conf.reload import Watched, file_state
from volcano_py.kube import errors, resource
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.informer import Informers
from volcano_py.metrics.unreadable import unreadable_gauge
from volcano_py.process.context import ProcessContext
from volcano_py.process.lifecycle import Lifecycle
from volcano_py.process.operator_pages import OperatorPages
from volcano_py.process.terms import Terms
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.options import OptionError
from volcano_py.runtime.signals import Shutdown
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.writing.throttled_log import ThrottledLog

log = structlog.get_logger()

COMPONENT: Final = "vc-webhook-manager"
_POLL_S: Final = 0.1
_CONF_POLL_S: Final = 1.0
_RETRY_S: Final = 1.0
_LONGEST_FAREWELL_S: Final = 5.0
_KINDS: Final = (resource.MUTATING_WEBHOOKS, resource.VALIDATING_WEBHOOKS)
_NAMESPACE_PATH: Final = "/podgroups/mutate"


class WebhookManager:
    """The webhooks of one process; run it once."""

    def __init__(
        self,
        credentials: Credentials,
        options: WebhookOptions,
        rules: Mapping[str, Rule],
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self.options = options
        agent = f"{COMPONENT}/{volcano_py.__version__}"
        self._context = context = ProcessContext.build(
            credentials, user_agent=agent, clock=clock, rng=rng, registry=registry
        )
        self.registry = context.registry
        self.metrics = metrics = AdmissionMetrics(context.registry)
        self._terms = Terms(
            credentials,
            options.lease,
            clock=context.clock,
            rng=context.rng,
            user_agent=agent,
            observer=context.observer,
            outage=context.client.outage,
        )
        self._informers = Informers(context.client, options=options.reflectors, clock=context.clock, rng=context.rng)
        self._lifecycle = Lifecycle(context, self._informers, freeze_garbage=options.freeze_garbage)
        self.ready = self._lifecycle.ready
        """Set when reviews are answered."""
        metrics.watch(self.ready.is_set, lambda: self._terms.leads)
        self._groups = options.rules.resource_groups
        self._ending = False
        self._served = ServedCertificate(metrics)
        queues, namespaces = self._watch_objects()
        configurations = self._watch_configurations()
        self._guard = QueueGuard(configurations[resource.VALIDATING_WEBHOOKS], context.clock)
        changing = self._build_changing()
        self._live = LiveReads(context.client, metrics, queues, changing)
        judge = Judge(rules, self._rule_options, queues, namespaces, self._live, metrics)
        self.server = ReviewServer(judge, options.paths, self._served.context, metrics, options.server)
        self._certificates = self._build_certificates(configurations)
        self._informers.count_unreadable(unreadable_gauge(self.registry))

    @property
    def leads(self) -> bool:
        """Whether this process writes certificates and bundles."""
        return self._terms.leads

    @property
    def certificate(self) -> Pair | None:
        """The certificate that new connections get."""
        return self._served.pair

    def _watch_objects(self) -> tuple[QueueView, NamespaceView]:
        """Add the watches of what verdicts rest on."""
        queues, namespaces = QueueView(), NamespaceView()
        self._informers.add(resource.QUEUES, QueueObject, queues, optional=True)
        if _NAMESPACE_PATH in self.options.paths:
            self._informers.add(resource.NAMESPACES, NamespaceObject, namespaces)
        return queues, namespaces

    def _watch_configurations(self) -> dict[resource.Resource, ConfigurationView]:
        """Add the watches of the webhook configurations."""
        views = {kind: ConfigurationView(self._look_again) for kind in _KINDS}
        for kind, view in views.items():
            self._informers.add(kind, Configuration, view)
        return views

    def _build_changing(self) -> ChangingQueues | None:
        """Return what is noted of queues; without their reviews there are no notes."""
        if QUEUE_PATH not in self.options.paths:
            return None
        client, clock = self._context.client, self._context.clock
        notes = QueueNotes(client, self.options.namespace, clock)
        return ChangingQueues(notes, clock, self._guard.holds, lambda: self.metrics.live_read("notes"))

    def _build_certificates(
        self, configurations: Mapping[resource.Resource, ConfigurationView]
    ) -> GivenCertificates | OwnCertificates:
        """Add the watch of the Secret."""
        options = self.options
        clock = self._context.clock
        injector = Injector(self._terms.client, webhook_names(options.paths), configurations, options.url, clock)
        if options.files is not None:
            return GivenCertificates(options.files, self._served, injector, clock)
        own = OwnCertificates(
            (options.namespace, SECRET),
            options.names,
            options.lifetime,
            served=self._served,
            injector=injector,
            client=self._terms.client,
            clock=clock,
        )
        field = f"metadata.name={SECRET}"
        self._informers.add(resource.SECRETS, SecretObject, own, namespace=options.namespace, field_selector=field)
        return own

    def _look_again(self) -> None:
        self._guard.look()
        self._certificates.changed.set()

    def _rule_options(self) -> Options:
        return replace(self.options.rules, resource_groups=self._groups)

    # Life

    async def run(self, shutdown: Shutdown) -> int:
        """Answer reviews until asked to end; return the exit code: 0 after an orderly end, 1 if it was forced.

        Raises AddressInUse or OSError before anything has begun, and TaskFailed if a part of the process fails.
        """
        if isinstance(self._certificates, GivenCertificates):
            self._load_given(self._certificates)
        if self.options.conf is not None:
            self._groups = _read_conf(self.options.conf)
        pages = OperatorPages(
            self.options.metrics_address,
            self.options.health_address,
            self.not_ready,
            metrics_flag="--metrics-address",
        )
        async with self._terms:
            try:
                code = await self._lifecycle.run(self, pages, shutdown)
            finally:
                await self.server.close(0)
            await self._terms.give_up()
            return code

    def _load_given(self, certificates: GivenCertificates) -> None:
        try:
            certificates.load()
        except Unusable as error:
            raise OSError(f"the certificate of --tls-cert-file cannot be served: {error}") from error

    def not_ready(self) -> list[str]:
        """Return what is missing until reviews are answered; empty when nothing is."""
        if self._ending:
            return ["the process ends"]
        if self.ready.is_set():
            return []
        missing = self._informers.not_ready()
        if self._served.pair is None:
            missing.append("there is no certificate yet")
        return missing or ["the server has not started yet"]

    def start(self, services: Supervisor) -> None:
        """Start what does not wait for the first lists."""
        options = self.options
        log.info("webhooks start", version=volcano_py.__version__, paths=options.paths)
        services.start("leader", self._terms.run(self._term))
        if isinstance(self._certificates, GivenCertificates):
            services.start("certificate files", self._certificates.watch())
        if options.conf is not None:
            services.start("configuration", self._follow(options.conf))

    async def _term(self) -> None:
        """Do what the leader alone does."""
        while self._informers.not_ready():
            await self._context.clock.sleep(_POLL_S)
        await self._certificates.lead()

    async def lead(self, _: Supervisor, __: Supervisor) -> None:
        """Begin to serve; the views are filled, and only the certificate may be missing."""
        while self._served.pair is None:
            await self._context.clock.sleep(_POLL_S)
        await self._prepare()
        await self.server.start()
        log.info("webhooks are served", port=self.server.port)

    async def _prepare(self) -> None:
        context = self._context
        event = "the place for notes about queues cannot be made; trying again"
        failures = ThrottledLog(event, context.clock, REPEAT_S, outage=context.client.outage)
        while True:
            try:
                return await self._live.prepare()
            except errors.ApiError as error:
                failures.log(str(error.status), why=error, problem=str(error))
                await context.clock.sleep(_RETRY_S)

    def stop(self, why_lost: str | None) -> None:
        """Ask clients to look for another replica."""
        self._ending = True
        self.server.retire()

    async def drain(self) -> bool:
        """Go on for a while, because API servers learn of the end late; then complete what is under way."""
        graceful_s = self.options.graceful_s
        farewell_s = min(_LONGEST_FAREWELL_S, graceful_s / 6)
        await self._context.clock.sleep(farewell_s)
        await self.server.close(graceful_s - farewell_s)
        log.info("webhooks end")
        return True

    async def _follow(self, path: Path) -> None:
        """Read the configuration file again when it changes; a faulty one is reported, and the former one stays."""
        watched = Watched(lambda: file_state(path))
        watched.reading()
        while True:
            await self._context.clock.sleep(_CONF_POLL_S)
            if watched.changed():
                watched.reading()
                try:
                    self._groups = _read_conf(path)
                    log.info("the configuration has changed", file=str(path), groups=len(self._groups))
                except OSError as error:
                    if error.__cause__ is None:  # otherwise the content is to blame
                        watched.failed(error)
                    log.warning("the configuration stays as it was", problem=str(error))


def _read_conf(path: Path) -> tuple[ResourceGroup, ...]:
    try:
        return read_groups(path.read_text())
    except (OptionError, UnicodeDecodeError) as error:
        raise OSError(f"--admission-conf={path}: {error}") from error
