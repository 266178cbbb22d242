"""Certificates of the webhooks: what is served, what clients trust, and when which of them is replaced.

    nothing usable ──▶ create: a new pair, served at once
    two thirds of its life are over ──▶ prepare: the next pair is kept beside the old one; clients trust both issuers
    every client trusts both ──▶ promote: the next pair is served; the former issuer stays trusted until it expires

A pair that is not valid yet is replaced, too: somebody whose clock was wrong has made it.

Each pair has an issuer of its own. The issuer's key is forgotten as soon as it has signed, so that nobody can steal it.
Everything here is a plain function of its arguments, apart from the random keys.
"""

import base64
import binascii
import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DEFAULT_LIFETIME: Final = timedelta(days=365)
_SKEW: Final = timedelta(minutes=5)  # clocks of other machines may be behind
_USED: Final = 2 / 3  # of a certificate's life, after which it is replaced
_MOST_ISSUERS: Final = 5

# Keys of the Secret. The first three are Volcano's.
TLS_KEY: Final = "tls.key"
TLS_CRT: Final = "tls.crt"
CA_CRT: Final = "ca.crt"
NEXT_KEY: Final = "next.key"
NEXT_CRT: Final = "next.crt"


class Unusable(ValueError):
    """A certificate, a key or a bundle cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate with the chain that goes with it, and its key, as PEM."""

    certificate: bytes
    key: bytes

    @property
    def leaf(self) -> x509.Certificate:
        """The certificate itself."""
        return _certificates(self.certificate)[0]

    def check(self, authorities: bytes) -> None:
        """Raise Unusable unless the key fits the certificate and the bundle has certificates."""
        try:
            key = serialization.load_pem_private_key(self.key, password=None)
        except (ValueError, TypeError) as error:
            raise Unusable(f"the key cannot be read: {error}") from error
        ours, theirs = (
            public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
            for public in (key.public_key(), self.leaf.public_key())
        )
        if ours != theirs:
            raise Unusable("the key does not belong to the certificate")
        _certificates(authorities)


@dataclass(frozen=True, slots=True)
class Held:
    """What the Secret holds."""

    serving: Pair
    authorities: bytes
    """What clients trust, as PEM: the issuers of the pair, of the next one and of former ones."""
    following: Pair | None = None

    @classmethod
    def of(cls, data: Mapping[str, str]) -> "Held":
        """Read the data of a Secret; raise Unusable if it lacks something or does not fit together."""
        try:
            plain = {key: base64.b64decode(data[key], validate=True) for key in data if key in _ALL_KEYS}
        except (binascii.Error, ValueError) as error:
            raise Unusable(f"its data is not base64: {error}") from error
        if missing := [key for key in (TLS_CRT, TLS_KEY, CA_CRT) if not plain.get(key)]:
            raise Unusable(f"it has no {' and no '.join(missing)}")
        held = cls(Pair(plain[TLS_CRT], plain[TLS_KEY]), plain[CA_CRT])
        held.serving.check(held.authorities)
        if plain.get(NEXT_CRT) and plain.get(NEXT_KEY):
            following = Pair(plain[NEXT_CRT], plain[NEXT_KEY])
            following.check(held.authorities)
            held = replace(held, following=following)
        return held

    def data(self) -> dict[str, str | None]:
        """Return the data of the Secret; None removes a key."""
        following = self.following
        plain = {
            TLS_CRT: self.serving.certificate,
            TLS_KEY: self.serving.key,
            CA_CRT: self.authorities,
            NEXT_CRT: following and following.certificate,
            NEXT_KEY: following and following.key,
        }
        return {key: base64.b64encode(value).decode() if value else None for key, value in plain.items()}


_ALL_KEYS: Final = frozenset({TLS_CRT, TLS_KEY, CA_CRT, NEXT_CRT, NEXT_KEY})


class Step(Enum):
    """What the leader does with the Secret now."""

    KEEP = "keep"
    CREATE = "create"
    PREPARE = "prepare"
    PROMOTE = "promote"


def next_step(held: Held | None, names: Sequence[str], now: datetime, trusted_for: timedelta | None) -> Step:
    """Return what is to be done; ``trusted_for`` says how long every client has had the bundle, None for not yet."""
    if held is None:
        return Step.CREATE
    leaf, following = held.serving.leaf, held.following
    usable = leaf.not_valid_before_utc <= now < leaf.not_valid_after_utc  # else no client accepts it
    early = following is not None and now < following.leaf.not_valid_before_utc
    if following is not None and not early:
        settled = trusted_for is not None and trusted_for >= settling(held.serving)
        return Step.PROMOTE if settled or not usable else Step.KEEP
    if not usable:
        return Step.CREATE
    if early or now >= renewal_time(leaf) or not covers(leaf, names):
        return Step.PREPARE
    return Step.KEEP


def taken(step: Step, held: Held | None, names: Sequence[str], now: datetime, lifetime: timedelta) -> Held:
    """Return what the Secret holds after a step."""
    if step is Step.PROMOTE:
        assert held is not None
        assert held.following is not None
        return replace(held, serving=held.following, following=None)
    pair, issuer = generated(names, now, lifetime)
    former = held.authorities if held is not None else b""
    authorities = bundle([issuer, former], now)
    if step is Step.PREPARE:
        assert held is not None
        return replace(held, authorities=authorities, following=pair)
    return Held(pair, authorities)


def settling(pair: Pair) -> timedelta:
    """Return how long all clients must have had a bundle before a pair of the new issuer is served."""
    leaf = pair.leaf
    return min(timedelta(seconds=30), (leaf.not_valid_after_utc - leaf.not_valid_before_utc) / 12)


def renewal_time(leaf: x509.Certificate) -> datetime:
    """Return when a certificate is replaced."""
    return leaf.not_valid_before_utc + (leaf.not_valid_after_utc - leaf.not_valid_before_utc) * _USED


def covers(leaf: x509.Certificate, names: Iterable[str]) -> bool:
    """Say whether a certificate is valid for all of these names and addresses."""
    try:
        extension = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    found = {str(value) for kind in (x509.DNSName, x509.IPAddress) for value in extension.get_values_for_type(kind)}
    return set(names) <= found


def bundle(parts: Iterable[bytes], now: datetime) -> bytes:
    """Return the certificates of all parts that are still valid, each once, at most five."""
    kept: dict[bytes, None] = {}
    for part in parts:
        for certificate in _certificates(part) if part.strip() else ():
            if certificate.not_valid_after_utc > now:
                kept[certificate.public_bytes(serialization.Encoding.PEM)] = None
    return b"".join(list(kept)[:_MOST_ISSUERS])


def generated(names: Sequence[str], now: datetime, lifetime: timedelta) -> tuple[Pair, bytes]:
    """Return a new pair for these names and the certificate of its issuer, whose key exists nowhere any more."""
    issuer_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    issuer_name = _name(f"volcano-admission-ca-{serial:x}"[:64])
    times = (now - min(_SKEW, lifetime / 100), now + lifetime)
    issuer_public = issuer_key.public_key()
    issuer = (
        _builder(issuer_name, issuer_name, issuer_public, serial, times)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(issuer_public), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    certificate = (
        _builder(_name(names[0][:64]), issuer_name, key.public_key(), x509.random_serial_number(), times)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_public), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem = serialization.Encoding.PEM
    return Pair(certificate.public_bytes(pem), private), issuer.public_bytes(pem)


def _certificates(pem: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise Unusable(f"a certificate cannot be read: {error}") from error


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    serial: int,
    times: tuple[datetime, datetime],
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(serial)
        .not_valid_before(times[0])
        .not_valid_after(times[1])
    )
