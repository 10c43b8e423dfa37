"""Files that are written for the user: each whole or not at all."""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False  # the typing module costs 4 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import IO, Any

    from ptxdsl.diagnostics import CompileError

    Write = Callable[[IO[bytes]], Any]  # puts into a file what belongs there


def check_outputs(outputs: Iterable[tuple[str, str]], read: Iterable[str]) -> None:
    """Before anything is made. outputs: options and the files that they name, read: files that are read.

    Raises E1007 where an output can be no file or may not be written, E1012 where it is one of those that are read or
    another output.
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
        try:
            place = _place(path)
        except (OSError, ValueError) as problem:
            raise _refused(path, problem) from None
        other = places.setdefault(place, option)
        if other is not option and (os.path.isfile(path) or not os.path.exists(path)):
            raise _error("E1012", f"{other} and {option} both write '{path}'", help="name two files")


def is_same_file(path: str, other: str) -> bool:
    """Whether both name one file that is there, perhaps through links. ``-`` is none."""
    return "-" not in (path, other) and os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)


def write_file(path: str, text: str | bytes) -> None:
    """Writes a file; one that was there is replaced. Raises E1007."""
    write_files([(path, text)])


def write_files(texts: Iterable[tuple[str, str | bytes]]) -> None:
    """Writes several files, or none where one of them cannot be written. Raises E1007."""
    _write_all((path, _writer(text)) for path, text in texts)


def write_by(path: str, write: Write) -> None:
    """As ``write_file``, of what ``write`` puts into the file."""
    _write_all([(path, write)])


def _writer(text: str | bytes) -> Write:
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    return lambda file: file.write(data)


def _write_all(files: Iterable[tuple[str, Write]]) -> None:
    made: list[tuple[str, str]] = []  # files under names of their own, and where they belong
    path = ""
    try:
        for path, write in files:
            place = _place(path)
            if _is_device(place):  # /dev/null, a pipe: nothing to rename
                with open(place, "wb") as device:
                    write(device)
                continue
            # Beside its place, under a name that no thread and no process before this one has.
            temporary = os.path.join(os.path.dirname(place), f".{os.urandom(8).hex()}.tmp")
            made.append((temporary, place))
            with open(temporary, "xb") as file:
                write(file)
            if os.path.exists(place):
                os.chmod(temporary, os.stat(place).st_mode & 0o7777)
        for temporary, path in made:
            os.replace(temporary, path)
    except (OSError, ValueError) as problem:
        raise _refused(path, problem) from None
    finally:
        for temporary, _ in made:
            if os.path.exists(temporary):
                os.unlink(temporary)


def make_folder(path: str) -> None:
    """A folder to write to, made with those above it where it is missing. Raises E1007."""
    if not path:
        raise _error("E1007", "no folder is named to write to", help="name one; the current one is .")
    try:
        os.makedirs(path, exist_ok=True)
    except FileExistsError:
        help = "name a folder, or one that is still to be made"
        raise _error("E1007", f"cannot write to '{path}': it is not a folder", help=help) from None
    except (OSError, ValueError) as problem:  # ValueError: a NUL in the path
        words = f"cannot make the folder '{path}': {getattr(problem, 'strerror', problem)}"
        raise _error("E1007", words, help=_help(problem)) from None


def _place(path: str) -> str:
    """Where an output goes: links followed, but a device or a pipe as it is called. Raises OSError where it cannot be
    written, ValueError for a NUL in the path."""
    if os.path.isdir(path):
        raise OSError(errno.EISDIR, "it is a folder")
    place = path if _is_device(path) else os.path.realpath(path)
    # A file is replaced, but not one that is to be kept.
    target = place if os.path.exists(place) else os.path.dirname(place)
    os.stat(target)
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return place


def _is_device(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path)


def _refused(path: str, problem: OSError | ValueError) -> CompileError:
    words = getattr(problem, "strerror", None) or problem
    return _error("E1007", f"cannot write '{path}': {words}", help=_help(problem))


_HELP = {
    errno.ENOENT: "its folder does not exist: create it, or name another",
    errno.ENOTDIR: "a part of its path is a file, not a folder: name another",
    errno.EISDIR: "name a file in it",
    errno.ENOSPC: "make room there, or name a place elsewhere",
    errno.EDQUOT: "make room there, or name a place elsewhere",
    errno.EFBIG: "files may not be larger there (ulimit -f): name a place elsewhere",
    errno.EACCES: "name a place where you may write",
    errno.EPERM: "name a place where you may write",
    errno.EROFS: "name a place where you may write",
    errno.ENAMETOOLONG: "give it a shorter name",
}  # fmt: skip


def _help(problem: OSError | ValueError) -> str:
    return _HELP.get(getattr(problem, "errno", None) or 0, "name another place")


def _error(code: str, message: str, help: str) -> CompileError:
    from ptxdsl.diagnostics import error  # for mistakes only: a command that the cache answers starts without it

    return error(code, message, None, help=help)
