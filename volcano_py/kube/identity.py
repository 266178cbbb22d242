"""Our identity towards an API server, and the certificates of its connections."""

import re
import ssl
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import structlog

log = structlog.get_logger()

UNTIL_REFUSED: Final = datetime.max.replace(tzinfo=UTC)
"""The expiry of an identity that is valid until the server refuses it."""
_SENDABLE: Final = re.compile(r"[\x20-\x7e]+")


class CredentialsError(Exception):
    """The API server cannot be reached with the given credentials; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A header, a client certificate, or both; equal to another one if the server cannot tell them apart."""

    authorization: str | None = field(default=None, repr=False)
    certificate: str = field(default="", repr=False)
    """The client certificate in use as PEM, without its key; "" for none."""
    until: datetime | None = field(default=None, compare=False)
    """When it expires; None if that is unknown, so that it is refreshed now and then."""

    def checked(self, origin: str) -> "Identity":
        """Return the same; raise CredentialsError for a token that no request can carry."""
        if self.authorization and not _SENDABLE.fullmatch(self.authorization):
            raise CredentialsError(
                f"{origin} gives a token with a character that no header may have, such as a line break: check it"
            )
        return self


def too_slow(limit_s: float) -> str:
    """Return the message for an identity that did not arrive in time."""
    return f"gave no credentials within {limit_s:g} s; try it by hand to see why"


def tls_context(address: str, settings: Any, origin: str) -> ssl.SSLContext | None:
    """Return the TLS context that the library's settings ask for, without a client certificate; None for plain HTTP."""
    if not address.startswith("https://"):
        return None
    try:
        context = ssl.create_default_context(cafile=settings.ssl_ca_cert)
    except OSError as error:
        raise CredentialsError(f"the certificates of {origin} cannot be used: {error}") from error
    # Python 3.13 refuses authorities without a key identifier; clusters use such ones, and Go clients accept them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not settings.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class Authorities:
    """The authorities that a TLS context trusts: those of a file, which follows when a cluster exchanges its own."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._content: bytes | None = None  # of the file, when it was read last
        self._problem = ""

    def follow(self, context: ssl.SSLContext | None, file: str | None) -> None:
        """Let new connections trust what the file has gained (called in a thread); what it had stays trusted.

        The token counts even if this fails, so that a failure is logged, and the next refresh tries it again.
        """
        if context is None or not file:
            return
        try:
            content = Path(file).read_bytes()
            if content != self._content:
                context.load_verify_locations(file)
        except OSError as error:
            problem = f"{type(error).__name__}: {error}"
            if problem != self._problem:
                log.warning(
                    "the authorities of the API server cannot be read again; the earlier ones stay trusted",
                    origin=self._origin,
                    file=file,
                    error=problem,
                )
            self._problem = problem
            return
        if self._content is not None and content != self._content:
            log.info("the authorities of the API server have changed", origin=self._origin, file=file)
        self._content, self._problem = content, ""


def show_files(context: ssl.SSLContext, certificate: str, key: str | None) -> None:
    """Make new connections present the client certificate of these files; raise OSError if it cannot be used."""
    # A certificate and key that do not match would leave the context with the new certificate and the old key.
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key)
    context.load_cert_chain(certificate, key)


def show_text(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Make new connections present this client certificate (PEM); raise OSError if it cannot be used.

    The ssl module reads files only, so a private temporary file exists for that moment.
    """
    with tempfile.TemporaryDirectory(prefix="volcano-py-") as folder:  # mode 0700
        pair = Path(folder) / "pair.pem"
        pair.touch(mode=0o600)
        pair.write_text(f"{certificate.strip()}\n{key.strip()}\n")
        show_files(context, str(pair), None)
