"""Derived data that is costly to make: parse tables and parsed library modules, by the digest of what made them.

An entry is looked for in the wheel first and in the user's cache directory second. The directory is private, and
nothing in it is believed that another user could have written: entries are pickles, and loading one runs it. A damaged,
foreign or outdated entry is made again without a word; a directory that cannot be written costs time, not an error.

``PTXDSL_CACHE_DIR`` names the directory (empty: no cache); else ``XDG_CACHE_HOME/ptxdsl``; else the platform's place.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
from pathlib import Path

from ptxdsl import resources
from ptxdsl.version import __version__

_MAGIC = b"ptxdsl-cache-1\n"
_KEY_BYTES = 32
_SUFFIX = ".entry"


def key(*parts: str) -> bytes:
    """The key of what is made from these texts by this version (32 bytes)."""
    digest = hashlib.sha256(__version__.encode())
    for part in parts:
        data = part.encode()
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.digest()


def pack(entry_key: bytes, payload: bytes) -> bytes:
    """An entry: magic, key, checksum over key and payload, payload."""
    return _MAGIC + entry_key + hashlib.sha256(entry_key + payload).digest() + payload


def unpack(entry_key: bytes, data: bytes) -> bytes | None:
    """The payload of an entry with this key; None where it is another's, or damaged."""
    head = len(_MAGIC) + 2 * _KEY_BYTES
    payload = data[head:]
    return payload if len(data) >= head and data[:head] == pack(entry_key, payload)[:head] else None


def directory() -> Path | None:
    """The cache directory, existing or not; None where the user wants none or has no home."""
    chosen = os.environ.get("PTXDSL_CACHE_DIR")
    if chosen is not None:
        return Path(chosen).absolute() if chosen else None
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):
        return Path(base) / "ptxdsl"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA", "")
        return Path(local) / "ptxdsl" / "Cache" if local else None
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        return None
    return Path(home, "Library/Caches/ptxdsl" if sys.platform == "darwin" else ".cache/ptxdsl")


def load(name: str, entry_key: bytes) -> bytes | None:
    """The payload of entry ``name`` if the wheel or the user's cache has it with this key."""
    shipped = resources.prebuilt(name)
    if shipped is not None and (payload := unpack(entry_key, shipped)) is not None:
        return payload
    where = _trusted(create=False)
    if where is None:
        return None
    data = _read_private(_path(where, name, entry_key))
    return None if data is None else unpack(entry_key, data)


def store(name: str, entry_key: bytes, payload: bytes) -> None:
    """Publishes an entry in the user's cache; silently nothing where that is not possible."""
    where = _trusted(create=True)
    if where is None:
        return
    path = _path(where, name, entry_key)
    # A name of one's own, then a rename: readers see the old entry or the new one, never half of one.
    temporary = where / f".{os.getpid()}-{os.urandom(6).hex()}.tmp"
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(pack(entry_key, payload))
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()


def entries() -> list[tuple[Path, int]]:
    """The files in the cache directory with their sizes in bytes; empty where the directory is not ours."""
    where = _trusted(create=False)
    if where is None:
        return []
    found = []
    for path in sorted(where.iterdir()):
        if path.suffix in (_SUFFIX, ".tmp"):
            with contextlib.suppress(OSError):
                found.append((path, path.lstat().st_size))
    return found


def clear() -> int:
    """Removes all entries; the number removed."""
    removed = 0
    for path, _ in entries():
        with contextlib.suppress(OSError):
            path.unlink()
            removed += 1
    return removed


def _path(where: Path, name: str, entry_key: bytes) -> Path:
    # Pickles are read by the Python that wrote them: interpreters that share a home do not fight over an entry.
    python = f"{sys.implementation.name}{sys.version_info.major}{sys.version_info.minor}"
    return where / f"{name}-{python}-{entry_key.hex()[:32]}{_SUFFIX}"


def _trusted(create: bool) -> Path | None:
    """The cache directory if it is a real directory that only this user can write; made (0700) if asked for."""
    where = directory()
    if where is None:
        return None
    try:
        if create:
            where.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                where.mkdir(mode=0o700)
        status = where.lstat()
    except OSError:
        return None
    return where if stat.S_ISDIR(status.st_mode) and _private(status) else None


def _read_private(path: Path) -> bytes | None:
    """The bytes of a regular file that only this user can have written. No link is followed."""
    try:
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            return file.read() if stat.S_ISREG(status.st_mode) and _private(status) else None
    except OSError:
        return None


def _private(status: os.stat_result) -> bool:
    if sys.platform == "win32":  # the profile's access list does this there
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022
