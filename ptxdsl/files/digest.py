"""SHA-256, without what the standard library loads for it."""

from __future__ import annotations

# hashlib loads OpenSSL, which takes longer than all digests of a compilation; random.py does the same.
try:
    from _sha2 import sha256  # type: ignore[import-not-found]
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import sha256

__all__ = ["digest", "sha256"]


def digest(data: bytes) -> str:
    """SHA-256, hexadecimal."""
    value: str = sha256(data).hexdigest()
    return value
