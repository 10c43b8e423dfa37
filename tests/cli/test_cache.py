"""The user's cache: what it believes, what it makes again, what it survives."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ptxdsl.files import cache

posix = pytest.mark.skipif(sys.platform == "win32", reason="permission bits")
KEY = cache.key("a", "b")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    where = tmp_path / "home" / "cache"
    monkeypatch.setenv("PTXDSL_CACHE_DIR", str(where))
    return where


def entry(folder: Path) -> Path:
    (path,) = folder.iterdir()
    return path


def test_what_is_stored_is_loaded() -> None:
    assert cache.load("thing", KEY) is None
    cache.store("thing", KEY, b"payload")
    assert cache.load("thing", KEY) == b"payload"
    assert cache.load("other", KEY) is None
    assert cache.load("thing", cache.key("a", "c")) is None


def test_keys_do_not_run_together() -> None:
    assert cache.key("ab", "c") != cache.key("a", "bc")


@posix
def test_folder_and_entries_are_private(folder: Path) -> None:
    old = os.umask(0)
    try:
        cache.store("thing", KEY, b"payload")
    finally:
        os.umask(old)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(entry(folder).stat().st_mode) == 0o600


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_an_entry_that_others_can_write_is_not_believed(folder: Path, mode: int) -> None:
    cache.store("thing", KEY, b"payload")
    entry(folder).chmod(mode)
    assert cache.load("thing", KEY) is None


@posix
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_folder_that_others_can_write_is_not_used(folder: Path, mode: int) -> None:
    cache.store("thing", KEY, b"payload")
    folder.chmod(mode)
    assert cache.load("thing", KEY) is None
    cache.store("second", KEY, b"payload")
    folder.chmod(0o700)
    assert len(list(folder.iterdir())) == 1


@posix
def test_what_another_user_owns_is_not_believed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.store("thing", KEY, b"payload")
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    assert cache.load("thing", KEY) is None
    assert cache.entries() == []


@posix
def test_a_link_to_an_entry_is_not_followed(folder: Path, tmp_path: Path) -> None:
    cache.store("thing", KEY, b"payload")
    path = entry(folder)
    path.symlink_to(path.rename(tmp_path / "elsewhere"))
    assert cache.load("thing", KEY) is None


@posix
def test_a_pipe_in_the_place_of_an_entry_does_not_block(folder: Path) -> None:
    cache.store("thing", KEY, b"payload")
    path = entry(folder)
    path.unlink()
    os.mkfifo(path)
    assert cache.load("thing", KEY) is None


@posix
def test_a_link_in_the_place_of_the_folder_is_not_used(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.store("thing", KEY, b"payload")
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.setenv("PTXDSL_CACHE_DIR", str(tmp_path / "link"))
    assert cache.load("thing", KEY) is None


@pytest.mark.parametrize(
    "damage", [lambda d: d[:-1], lambda d: d[:20], lambda d: b"", lambda d: d[:-1] + b"X", lambda d: b"X" + d[1:]]
)
def test_damaged_entries_are_no_entries(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    cache.store("thing", KEY, b"payload")
    path = entry(folder)
    path.write_bytes(damage(path.read_bytes()))
    assert cache.load("thing", KEY) is None
    cache.store("thing", KEY, b"payload")
    assert cache.load("thing", KEY) == b"payload"


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for where in (str(tmp_path / "file"), str(tmp_path / "file" / "below"), ""):
        monkeypatch.setenv("PTXDSL_CACHE_DIR", where)
        cache.store("thing", KEY, b"payload")
        assert cache.load("thing", KEY) is None
        assert cache.clear() == 0


def test_a_full_disk_is_no_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    cache.store("thing", KEY, b"payload")
    assert list(folder.iterdir()) == []


def test_concurrent_writers_leave_one_whole_entry(folder: Path) -> None:
    payload = os.urandom(200_000)

    def work(_: int) -> bool:
        cache.store("thing", KEY, payload)
        return cache.load("thing", KEY) == payload

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(64)))
    assert len(list(folder.iterdir())) == 1


def test_what_was_not_used_for_longest_goes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "SIZE_LIMIT", 5000)
    monkeypatch.setattr(cache, "_SIZE_AFTER_EVICTION", 3500)
    keys = [cache.key(str(i)) for i in range(5)]
    for age, key in zip((40, 50, 30, 20), keys, strict=False):
        cache.store("thing", key, bytes(1000))
        then = time.time() - age
        os.utime(next(p for p in folder.iterdir() if key.hex()[:32] in p.name), (then, then))
    assert cache.load("thing", keys[1]) is not None  # which makes it the youngest
    cache.store("thing", keys[4], bytes(1000))
    assert [cache.load("thing", key) is not None for key in keys] == [False, True, False, True, True]


def test_few_stores_look_for_old_entries(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be thousands, and a look at all of them takes longer than a compilation."""
    looks = []
    monkeypatch.setattr(cache, "_evict", lambda: looks.append(None))
    for i in range(1024):
        cache.store("thing", cache.key(str(i)), bytes(4096))  # 8 MiB with what else a file takes
    assert 1 <= len(looks) <= 16


def test_what_ended_processes_left_goes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "SIZE_LIMIT", 100_000)  # so small that each store looks
    cache.store("thing", KEY, b"payload")
    for name, age in (("old.tmp", 7200), ("new.tmp", 10)):
        (folder / name).touch()
        os.utime(folder / name, (time.time() - age,) * 2)
    cache.store("thing", KEY, b"payload")
    assert [p.name for p in folder.glob("*.tmp")] == ["new.tmp"]


def test_clear_takes_entries_alone(folder: Path) -> None:
    cache.store("thing", KEY, b"payload")
    (folder / "mine.txt").touch()
    assert cache.clear() == 1
    assert [p.name for p in folder.iterdir()] == ["mine.txt"]


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PTXDSL_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.directory() == str(tmp_path / "ptxdsl")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache.directory() == str(tmp_path / ".cache" / "ptxdsl")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache.directory() == str(tmp_path / "Library" / "Caches" / "ptxdsl")


def test_an_entry_of_absurd_size_is_not_read(folder: Path) -> None:
    cache.store("thing", KEY, b"payload")
    os.truncate(entry(folder), 1 << 40)
    assert cache.load("thing", KEY) is None
