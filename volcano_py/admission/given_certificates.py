"""Certificates that somebody else makes: three files, which are read again when they change.

A new pair is served as soon as API servers trust its issuer. Until then they get the former one, so that no request
fails while the files, the webhook configurations and the API servers change one after the other.
"""

import asyncio
from typing import Final, NamedTuple

import structlog

from volcano_py.admission.certificates import Pair, Unusable, bundle
from volcano_py.admission.injection import Injector
from volcano_py.admission.options import Files
from volcano_py.admission.serving import ServedCertificate
from volcano_py.conf.reload import Watched, file_state
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

_POLL_S: Final = 0.5
_SETTLED_S: Final = 2.0
"""How long the webhook configurations must have had the issuer before its pair is served."""
_PATIENCE_S: Final = 30.0
"""After which the pair is served although the configurations do not have the issuer: somebody else may write them."""
_RETRY_S: Final = 5.0


class _Read(NamedTuple):
    pair: Pair
    authorities: bytes


class GivenCertificates:
    """The pair of three files."""

    def __init__(self, files: Files, served: ServedCertificate, injector: Injector, clock: Clock) -> None:
        self._files, self._served, self._injector, self._clock = files, served, injector, clock
        self._watched = Watched(lambda: tuple(file_state(path) for path in files))
        self._authorities = b""
        self.changed = asyncio.Event()
        """Set when there may be something to inject."""

    def load(self) -> None:
        """Read the files and serve what they hold; raise Unusable if that is no good."""
        self._watched.reading()
        found = self._read()
        self._served.serve(found.pair, found.authorities)
        self._authorities = found.authorities

    async def watch(self) -> None:
        """Follow changes of the files."""
        while True:
            await self._clock.sleep(_POLL_S)
            if not self._watched.changed():
                continue
            self._watched.reading()
            try:
                found = self._read()
                found.pair.check(found.authorities)
                await self._turn_over(found)
            except (Unusable, OSError) as error:
                if isinstance(error, OSError):
                    self._watched.failed(error)
                log.warning("the files of the certificate have changed and are no good", problem=str(error))

    async def lead(self) -> None:
        """Write the bundle into the webhook configurations whenever it is missing."""
        while True:
            self.changed.clear()
            complete = await self._injector.inject(self._authorities)
            try:
                async with asyncio.timeout(None if complete else _RETRY_S):
                    await self.changed.wait()
            except TimeoutError:
                continue

    def _read(self) -> _Read:
        files = self._files
        return _Read(Pair(files.certificate.read_bytes(), files.key.read_bytes()), files.authorities.read_bytes())

    async def _turn_over(self, found: _Read) -> None:
        now = self._clock.now()
        before, both = bundle([self._authorities], now), bundle([found.authorities, self._authorities], now)
        if both != before:
            self._authorities = both
            self.changed.set()
            await self._trusted(found.authorities)
        self._served.serve(found.pair, found.authorities)

    async def _trusted(self, authorities: bytes) -> None:
        """Wait until the webhook configurations have had the issuer for a while."""
        began = self._clock.monotonic()
        since: float | None = None
        while self._clock.monotonic() - began < _PATIENCE_S:
            now = self._clock.monotonic()
            since = (since or now) if self._injector.trusted(authorities) else None
            if since is not None and now - since >= _SETTLED_S:
                return
            await self._clock.sleep(_POLL_S / 5)
        log.warning("the webhook configurations do not trust the new certificate; serving it all the same")
