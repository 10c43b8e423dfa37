"""Derived data that is costly to make, by the digest of what made it: parse tables, library trees, PTX.

An entry is looked for in the wheel first and in the user's cache directory second. The directory is private, and
nothing in it is believed that another user could have written: the library's trees are pickles, and loading one runs
it. A damaged, foreign or outdated entry is made again without a word; a directory that cannot be written costs time,
not an error. What was not used for longest goes when the directory has grown to ``SIZE_LIMIT``.

``PTXDSL_CACHE_DIR`` names the directory (empty: no cache); else ``XDG_CACHE_HOME/ptxdsl``; else the platform's place.
"""

from __future__ import annotations

import os
import stat
import sys
from binascii import crc32

from ptxdsl.files.digest import sha256
from ptxdsl.version import __version__

TYPE_CHECKING = False  # the typing module costs 4 ms
if TYPE_CHECKING:
    from collections.abc import Callable

SIZE_LIMIT = 128 << 20  # bytes
_SIZE_AFTER_EVICTION = SIZE_LIMIT // 4 * 3  # so much is left when old entries have gone
# Seconds: a temporary file so old is of a process that has ended.
_ABANDONED_AFTER = 3600
_BLOCK = 4096  # bytes that an entry takes beside its own

_MAGIC = b"ptxdsl-cache-2\n"
_KEY_BYTES = 32
_CHECKSUM_BYTES = 4
_SUFFIX = ".entry"


def key(*parts: str | bytes) -> bytes:
    """The key of what is made from these texts by this version (32 bytes)."""
    made = sha256(__version__.encode())
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        made.update(b"%d:" % len(data))
        made.update(data)
    value: bytes = made.digest()
    return value


def pack(entry_key: bytes, payload: bytes) -> bytes:
    """An entry: magic, key, checksum over key and payload, payload."""
    return _head(entry_key, payload) + payload


def unpack(entry_key: bytes, data: bytes) -> bytes | None:
    """The payload of an entry with this key; None where it is another's, or damaged."""
    size = len(_MAGIC) + _KEY_BYTES + _CHECKSUM_BYTES
    payload = data[size:]
    return payload if data[:size] == _head(entry_key, payload) else None


def _head(entry_key: bytes, payload: bytes) -> bytes:
    # Against damage alone, so CRC-32: whoever may write an entry could make any checksum fit.
    return _MAGIC + entry_key + crc32(payload, crc32(entry_key)).to_bytes(_CHECKSUM_BYTES, "big")


def directory() -> str | None:
    """The cache directory, existing or not; None where the user wants none or has no home."""
    chosen = os.environ.get("PTXDSL_CACHE_DIR")
    if chosen is not None:
        try:
            return os.path.abspath(chosen) if chosen else None
        except OSError:  # the current directory, which the name starts from, has been removed
            return None
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):
        return os.path.join(base, "ptxdsl")
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA", "")
        return os.path.join(local, "ptxdsl", "Cache") if local else None
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        return None
    return os.path.join(home, "Library/Caches/ptxdsl" if sys.platform == "darwin" else ".cache/ptxdsl")


def load(name: str, entry_key: bytes) -> bytes | None:
    """The payload of entry ``name`` if the wheel or the user's cache has it with this key."""
    from ptxdsl.files import resources  # what the wheel ships: `ptxdsl cache` asks for none of it

    shipped = resources.prebuilt(name)
    if shipped is not None and (payload := unpack(entry_key, shipped)) is not None:
        return payload
    return load_own(name, entry_key)


def load_own(name: str, entry_key: bytes) -> bytes | None:
    """The payload of entry ``name`` if the user's cache has it with this key; it counts as used now."""
    where = _trusted(create=False)
    if where is None:
        return None
    path = _path(where, name, entry_key)
    data = _read_private(path)
    payload = None if data is None else unpack(entry_key, data)
    if payload is not None:
        _quietly(os.utime, path)
    return payload


def store(name: str, entry_key: bytes, payload: bytes) -> None:
    """Publishes an entry in the user's cache; silently nothing where that is not possible."""
    where = _trusted(create=True)
    if where is None:
        return
    # A name of one's own, then a rename: readers see the old entry or the new one, never half of one.
    temporary = os.path.join(where, f".{os.getpid()}-{os.urandom(6).hex()}.tmp")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(pack(entry_key, payload))
        os.replace(temporary, _path(where, name, entry_key))
    except OSError:
        _quietly(os.unlink, temporary)
    if _has_turn(entry_key, len(payload)):
        _evict()


def is_distrusted() -> bool:
    """Whether there is something in the cache directory's place that is not used: others can write to it."""
    where = directory()
    return where is not None and os.path.lexists(where) and _trusted(create=False) is None


def entries() -> list[tuple[str, int]]:
    """The files in the cache directory with their sizes in bytes; empty where the directory is not ours."""
    return [(path, status.st_size) for path, status in _files()]


def clear() -> int:
    """Removes all entries; the number removed."""
    return sum(_quietly(os.unlink, path) for path, _ in _files())


def _files() -> list[tuple[str, os.stat_result]]:
    where = _trusted(create=False)
    found = []
    try:
        for name in sorted(os.listdir(where)) if where is not None else ():
            if name.endswith((_SUFFIX, ".tmp")):
                path = os.path.join(where or "", name)
                found.append((path, os.lstat(path)))
    except OSError:  # another process clears it
        pass
    return found


def _has_turn(entry_key: bytes, size: int) -> bool:
    """Whether this store looks for old entries: one in so many bytes does, since there may be thousands of them. A
    key is a digest, so its first bytes are as good as random ones."""
    return int.from_bytes(entry_key[:4], "big") * (SIZE_LIMIT // 64) < (size + _BLOCK) << 32


def _evict() -> None:
    files = sorted(_files(), key=lambda file: file[1].st_mtime)
    total = sum(status.st_size for _, status in files)
    if not files:
        return
    newest = files[-1][1].st_mtime
    for path, status in files:
        if path.endswith(".tmp") and newest - status.st_mtime > _ABANDONED_AFTER:
            _quietly(os.unlink, path)
    if total > SIZE_LIMIT:
        for path, status in files[:-1]:
            if total > _SIZE_AFTER_EVICTION and path.endswith(_SUFFIX) and _quietly(os.unlink, path):
                total -= status.st_size


def _quietly(action: Callable[[str], None], path: str) -> bool:
    """Whether the file system let it."""
    try:
        action(path)
    except OSError:
        return False
    return True


def _path(where: str, name: str, entry_key: bytes) -> str:
    # Pickles are read by the Python that wrote them: interpreters that share a home do not fight over an entry.
    python = f"{sys.implementation.name}{sys.version_info.major}{sys.version_info.minor}"
    return os.path.join(where, f"{name}-{python}-{entry_key.hex()[:32]}{_SUFFIX}")


def _trusted(create: bool) -> str | None:
    """The cache directory if it is a real directory that only this user can write; made (0700) if asked for."""
    where = directory()
    if where is None:
        return None
    try:
        if create:
            os.makedirs(os.path.dirname(where), exist_ok=True)
            _quietly(lambda path: os.mkdir(path, 0o700), where)
        status = os.lstat(where)
    except OSError:
        return None
    return where if stat.S_ISDIR(status.st_mode) and _private(status) else None


def _read_private(path: str) -> bytes | None:
    """The bytes of a regular file that only this user can have written, of no absurd size. No link is followed."""
    try:
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(path, flags), "rb") as file:
            status = os.fstat(file.fileno())
            ours = stat.S_ISREG(status.st_mode) and _private(status) and status.st_size <= SIZE_LIMIT
            return file.read() if ours else None
    except OSError:
        return None


def _private(status: os.stat_result) -> bool:
    if sys.platform == "win32":  # the profile's access list does this there
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022
