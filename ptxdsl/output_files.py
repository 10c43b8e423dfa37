"""Files that are written for the user: each whole or not at all."""

from __future__ import annotations

import os

from ptxdsl.diagnostics import error

TYPE_CHECKING = False  # the typing module costs 4 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO, Any


def check_output(path: str, read: str) -> None:
    """Before anything is compiled: raises E1007 where ``path`` can be no file, E1012 where it is the file ``read``."""
    if not path:
        raise error("E1007", "-o names no file", None, help="name one, or leave -o out for standard output")
    if path.endswith(("/", os.sep)) and not os.path.isdir(path):
        raise error(
            "E1007", f"cannot write '{path}': it is a folder's name", None, help=f"for example {path}kernel.ptx"
        )
    if read != "-" and os.path.exists(path) and os.path.exists(read) and os.path.samefile(path, read):
        raise error(
            "E1012", f"the output '{path}' is the file that is compiled", None, help="name another file with -o"
        )


def write_file(path: str, text: str | bytes) -> None:
    """Writes a file; one that was there is replaced. Raises E1007."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    write_by(path, lambda file: file.write(data))


def write_by(path: str, write: Callable[[IO[bytes]], Any]) -> None:
    """As ``write_file``, of what ``write`` puts into the file."""
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            if os.path.isdir(path):
                raise error("E1007", f"cannot write '{path}': it is a folder", None)
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
        raise error("E1007", f"cannot write '{path}': {getattr(problem, 'strerror', None) or problem}", None) from None


def make_folder(path: str) -> None:
    """A folder to write to, made with those above it where it is missing. Raises E1007."""
    try:
        os.makedirs(path or ".", exist_ok=True)
    except FileExistsError:
        raise error("E1007", f"cannot write to '{path}': it is no folder", None) from None
    except (OSError, ValueError) as problem:  # ValueError: a NUL in the path
        raise error(
            "E1007", f"cannot make the folder '{path}': {getattr(problem, 'strerror', problem)}", None
        ) from None
