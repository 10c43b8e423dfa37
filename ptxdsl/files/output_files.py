"""Files that are written for the user: each whole or not at all."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # the typing module costs 4 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import IO, Any

    from ptxdsl.diagnostics import CompileError


def check_outputs(outputs: Iterable[tuple[str, str]], read: Iterable[str]) -> None:
    """Before anything is made. outputs: options and the files that they name, read: files that are read.

    Raises E1007 where an output can be no file, E1012 where it is one of those that are read or another output.
    """
    places: dict[str, str] = {}
    for option, path in outputs:
        if not path:
            raise _error("E1007", f"{option} names no file", help=f"name one, or leave {option} out")
        if path.endswith(("/", os.sep)) and not os.path.isdir(path):
            help = f"for example {path}kernel.ptx"
            raise _error("E1007", f"cannot write '{path}': it is a folder's name", help=help)
        for file in read:
            if is_same_file(path, file):
                help = f"name another file with {option}"
                raise _error("E1012", f"the output '{path}' is the file that is read", help=help)
        other = places.setdefault(os.path.realpath(path), option)
        if other is not option and (os.path.isfile(path) or not os.path.exists(path)):
            raise _error("E1012", f"{other} and {option} both write '{path}'", help="name two files")


def is_same_file(path: str, other: str) -> bool:
    """Whether both name one file that is there, perhaps through links. ``-`` is none."""
    return "-" not in (path, other) and os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)


def write_file(path: str, text: str | bytes) -> None:
    """Writes a file; one that was there is replaced. Raises E1007."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    write_by(path, lambda file: file.write(data))


def write_by(path: str, write: Callable[[IO[bytes]], Any]) -> None:
    """As ``write_file``, of what ``write`` puts into the file."""
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            if os.path.isdir(path):
                raise _error("E1007", f"cannot write '{path}': it is a folder")
            with open(path, "wb") as device:  # /dev/null, a pipe: nothing to rename
                write(device)
            return
        place = os.path.realpath(path)
        # Beside its place, to be renamed, under a name that no thread and no process before this one has.
        temporary = os.path.join(os.path.dirname(place), f".{os.urandom(8).hex()}.tmp")
        try:
            with open(temporary, "xb") as file:
                write(file)
            if os.path.exists(place):
                os.chmod(temporary, os.stat(place).st_mode & 0o7777)
            os.replace(temporary, place)
        finally:
            if os.path.exists(temporary):
                os.unlink(temporary)
    except (OSError, ValueError) as problem:  # ValueError: a NUL in the path
        raise _error("E1007", f"cannot write '{path}': {getattr(problem, 'strerror', None) or problem}") from None


def make_folder(path: str) -> None:
    """A folder to write to, made with those above it where it is missing. Raises E1007."""
    try:
        os.makedirs(path or ".", exist_ok=True)
    except FileExistsError:
        raise _error("E1007", f"cannot write to '{path}': it is no folder") from None
    except (OSError, ValueError) as problem:  # ValueError: a NUL in the path
        raise _error("E1007", f"cannot make the folder '{path}': {getattr(problem, 'strerror', problem)}") from None


def _error(code: str, message: str, help: str | None = None) -> CompileError:
    from ptxdsl.diagnostics import error  # for mistakes only: a command that the cache answers starts without it

    return error(code, message, None, help=help)
