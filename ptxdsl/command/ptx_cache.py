"""What was compiled before: PTX for the command, whole artifacts for the Python API, without the compiler.

An entry is found by everything that its PTX is a function of and that is known before a compilation: the compiler (its
files, as the file system knows them), LLVM's version, the text, its name and the options. What a compilation finds out
is in the entry and asked again: how each import of a user's file was resolved, and the digest of the file. So a changed
import, and a new file that takes a name from the library, make an entry void. Commands that had something to say are
not kept. ``cache.py`` says who may have written what is read here; nothing in a command's entry is code. The API's
entries are ``kernel_cache.py``'s.
"""

from __future__ import annotations

import os
import sys

from ptxdsl.command.command_line import Arguments
from ptxdsl.files import cache
from ptxdsl.files.digest import digest
from ptxdsl.files.text_files import LeavesFolderError, find_module
from ptxdsl.version import __version__

TYPE_CHECKING = False  # the typing module costs 4 ms
if TYPE_CHECKING:
    from ptxdsl.imports import Resolutions

_NAME = "ptx"
_SUFFIXES = (".pdsl", ".mojo")

# Arguments that have no part in the PTX.
_NO_PART = ("output", "json", "no_cache", "command")


def key(arguments: Arguments, name: str, data: bytes) -> bytes | None:
    """The key of a ``compile`` command for the text ``data`` called ``name``; None where nothing is to be kept.

    ``--no-cache`` and a non-empty PTXDSL_NO_CACHE turn the cache off.
    """
    if arguments.no_cache or turned_off() or arguments.emit != "ptx":
        return None
    if not (name.endswith(_SUFFIXES) or name.startswith("<")):
        return None
    given = sorted((place, value) for place, value in vars(arguments).items() if place not in _NO_PART)
    return cache.key("ptx", compiler(), name, repr(given), data)


def look_up(entry_key: bytes) -> bytes | None:
    """The PTX of an entry all of whose imports are as they were."""
    return look_up_made(_NAME, entry_key)


def look_up_made(name: str, entry_key: bytes) -> bytes | None:
    """What ``keep_made`` kept under a name and key, if all imports are as they were."""
    payload = cache.load_own(name, entry_key)
    if payload is None:
        return None
    try:
        count, _, rest = payload.partition(b"\0")
        *fields, made = rest.split(b"\0", 4 * int(count))
        if len(fields) != 4 * int(count):
            return None
        for i in range(0, len(fields), 4):
            importing, module, path, expected = (os.fsdecode(field) for field in fields[i : i + 4])
            if (find_module(importing, module) or "") != path:
                return None
            if path:
                with open(path, "rb") as file:
                    if digest(file.read()) != expected:
                        return None
    except (OSError, ValueError, LeavesFolderError):
        return None
    return made


def keep(entry_key: bytes, resolutions: Resolutions, ptx: str) -> None:
    """Stores the PTX of a compilation whose imports were resolved so."""
    keep_made(_NAME, entry_key, resolutions, ptx.encode("utf-8", "surrogateescape"))


def keep_made(name: str, entry_key: bytes, resolutions: Resolutions, made: bytes) -> None:
    """Stores what a compilation made whose imports were resolved so."""
    fields = [str(len(resolutions))]
    for (importing, module), (path, known) in resolutions.items():
        fields += [importing, module, path, known]
    if not any("\0" in field for field in fields):
        head = b"".join(os.fsencode(field) + b"\0" for field in fields)
        cache.store(name, entry_key, head + made)


def turned_off() -> bool:
    """Whether the user wants nothing to be kept (PTXDSL_NO_CACHE)."""
    return bool(os.environ.get("PTXDSL_NO_CACHE"))


def compiler() -> str:
    """What the compiler is made of: its files with their sizes and the times of their last change, LLVM, Python."""
    import llvmlite

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    root = os.path.dirname(package)
    parts = [__version__, llvmlite.__version__, sys.version]
    for top in (package, os.path.join(root, "grammar"), os.path.join(root, "stdlib")):
        folders = [top]
        while folders:
            try:
                inside = sorted(os.scandir(folders.pop()), key=lambda entry: entry.name)
            except OSError:  # grammar and stdlib lie elsewhere in a wheel
                continue
            for entry in inside:
                if entry.is_dir():
                    if entry.name != "__pycache__":
                        folders.append(entry.path)
                elif entry.name.endswith((".py", ".pdsl", ".lark")):
                    status = entry.stat()
                    parts.append(f"{entry.name}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}")
    return "\n".join(parts)
