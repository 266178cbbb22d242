"""Generates the key pair of a job with plugin ssh."""

from typing import Final

from volcano_py.controllers.job.plugins.contract import KeyPair

_BITS: Final = 2048
_EXPONENT: Final = 65537


def generate_key_pair() -> KeyPair:
    """Return a new RSA key pair of 2048 bits.

    Takes about 0.1 s of CPU and other threads go on meanwhile: call it in a thread, not on an event loop.
    """
    # Imported here: it takes 50 ms and 10 MiB, and most controller managers never see a job with this plugin.
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(_EXPONENT, _BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return KeyPair(private.decode(), public.decode() + "\n")
