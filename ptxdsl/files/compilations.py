"""What compilations made, kept on disk: PTX of the command, whole artifacts of the Python API.

An entry is found by everything that a compilation is a function of and that is known before it: the compiler (its
files, as the file system knows them), LLVM's version, the text, its name and the options. What a compilation finds out
is in the entry and asked again: how each import of a user's file was resolved, and the digest of the file. So a changed
import, and a new file that takes a name from the library, make an entry void. ``cache.py`` says who may have written
what is read here.
"""

from __future__ import annotations

import os
import sys

from ptxdsl.files import cache
from ptxdsl.files.digest import digest
from ptxdsl.files.text_files import LeavesFolderError, find_module
from ptxdsl.hints import TYPE_CHECKING
from ptxdsl.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

# The importing file's name and the module's with its dots: the path and the digest of the file it is, both empty where
# it is none.
Resolutions = dict[tuple[str, str], tuple[str, str]]

# Folders with nothing that a compilation uses.
NO_PART = frozenset(("__pycache__", "aot", "api", "cuda", "explanations", "explore", "races", "run", "sim", "tuning"))


def look_up(name: str, entry_key: bytes, folders: Sequence[str]) -> bytes | None:
    """What ``keep`` kept under a name and key, if all imports are as they were.

    folders: where the program's modules lie, as ``search_folders`` says.
    """
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
            if (find_module(importing, module, folders) or "") != path:
                return None
            if path:
                with open(path, "rb") as file:
                    if digest(file.read()) != expected:
                        return None
    except (OSError, ValueError, LeavesFolderError):
        return None
    return made


def keep(name: str, entry_key: bytes, resolutions: Resolutions, made: bytes) -> None:
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
                    if entry.name not in NO_PART:
                        folders.append(entry.path)
                elif entry.name.endswith((".py", ".pdsl", ".lark")):
                    status = entry.stat()
                    parts.append(f"{entry.name}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}")
    return "\n".join(parts)
