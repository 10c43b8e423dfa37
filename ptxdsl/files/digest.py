"""SHA-256, without what the standard library loads for it; less for the compiler's own files."""

from __future__ import annotations

from binascii import crc32

# hashlib loads OpenSSL, which takes longer than all digests of a compilation; random.py does the same.
try:
    from _sha2 import sha256  # type: ignore[import-not-found]
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import sha256

__all__ = ["digest", "fingerprint", "sha256"]


def digest(data: bytes) -> str:
    """SHA-256, hexadecimal."""
    value: str = sha256(data).hexdigest()
    return value


def fingerprint(data: bytes) -> str:
    """Size and CRC-32: for telling versions of one of the compiler's own files apart, which nobody makes to collide.

    SHA-256 takes thirty times as long, and several of these files are looked at whenever the compiler starts.
    """
    return f"{len(data)}:{crc32(data):08x}"
