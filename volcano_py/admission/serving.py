"""The TLS side of the server: the certificate that new connections get, which may change at any time."""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog

from volcano_py.admission.certificates import Pair, Unusable
from volcano_py.admission.metrics import AdmissionMetrics

log = structlog.get_logger()

_CIPHERS: Final = "ECDHE+AESGCM"  # of TLS 1.2; those of TLS 1.3 are all good


class ServedCertificate:
    """A TLS context for servers, and the pair that it serves."""

    def __init__(self, metrics: AdmissionMetrics) -> None:
        self._metrics = metrics
        self.context = _server_context()
        self.pair: Pair | None = None

    def serve(self, pair: Pair, authorities: bytes) -> None:
        """Give this pair to new connections; raise Unusable, and keep the former one, if it is no good."""
        if pair == self.pair:
            return
        try:
            pair.check(authorities)
            leaf = pair.leaf
            _load(_server_context(), pair)  # a context that has failed to load may serve a key without its certificate
            _load(self.context, pair)
        except Unusable:
            self._metrics.certificate_refused()
            raise
        self.pair = pair
        self._metrics.certificate(leaf.not_valid_after_utc.timestamp())
        log.info("serving a certificate", serial=f"{leaf.serial_number:x}", expires=str(leaf.not_valid_after_utc))


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    return context


def _load(context: ssl.SSLContext, pair: Pair) -> None:
    with _as_file(pair.certificate + b"\n" + pair.key) as path:
        try:
            context.load_cert_chain(path)
        except (ssl.SSLError, ValueError) as error:
            raise Unusable(f"the pair cannot be loaded: {error}") from error


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Yield the path of a file with this content, which is in memory where the system can do that."""
    if hasattr(os, "memfd_create"):
        number = os.memfd_create("volcano-admission")
        try:
            os.write(number, content)
            yield f"/proc/self/fd/{number}"
        finally:
            os.close(number)
    else:
        with tempfile.NamedTemporaryFile() as file:  # readable by this user alone
            file.write(content)
            file.flush()
            yield file.name
