"""PTX that the command compiled before: the same command again loads no compiler.

Commands that had something to say are not kept, and nothing in an entry is code.
"""

from __future__ import annotations

from ptxdsl.command.command_line import Arguments
from ptxdsl.files import cache, compilations
from ptxdsl.files.text_files import search_folders

_NAME = "ptx"
_SUFFIXES = (".pdsl", ".mojo")

# Arguments that have no part in the PTX.
_NO_PART = ("output", "json", "no_cache", "command")


def key(arguments: Arguments, name: str, data: bytes) -> bytes | None:
    """The key of a ``compile`` command for the text ``data`` called ``name``; None where nothing is to be kept.

    ``--no-cache`` and a non-empty PTXDSL_NO_CACHE turn the cache off.
    """
    if arguments.no_cache or compilations.turned_off() or arguments.emit != "ptx":
        return None
    if not (name.endswith(_SUFFIXES) or name.startswith("<")):
        return None
    given = sorted((place, value) for place, value in vars(arguments).items() if place not in _NO_PART)
    return cache.key("ptx", compilations.compiler(), name, repr(given), data)


def look_up(entry_key: bytes, arguments: Arguments, name: str) -> bytes | None:
    """The PTX of an entry all of whose imports are as they were."""
    return compilations.look_up(_NAME, entry_key, search_folders(name, arguments.include or ()))


def keep(entry_key: bytes, resolutions: compilations.Resolutions, ptx: str) -> None:
    """Stores the PTX of a compilation whose imports were resolved so."""
    compilations.keep(_NAME, entry_key, resolutions, ptx.encode("utf-8", "surrogateescape"))
