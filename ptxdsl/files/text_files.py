"""Files of programs: their bytes, and where the modules lie that they import."""

from __future__ import annotations

import os

from ptxdsl.hints import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# ``module``: a user's own module; the suffixes in the order in which they are looked for.
_FILE_FORMS = ("{}.pdsl", "{}.mojo", "{}/__init__.pdsl", "{}/__init__.mojo")

# No kernel is so long: a device or a stray binary is meant.
SIZE_LIMIT = 16 << 20  # bytes


class LeavesFolderError(Exception):
    """A module's file would be outside of the program's folders, by dots or by a link."""


def read_bytes(path: str) -> bytes:
    """At most ``SIZE_LIMIT`` bytes and one of a file. Raises CompileError E1001 to E1003."""
    try:
        if os.path.isdir(path):
            raise IsADirectoryError
        with open(path, "rb") as file:
            return file.read(SIZE_LIMIT + 1)
    except (OSError, ValueError) as problem:  # ValueError: a NUL in the path
        from ptxdsl.diagnostics import error  # for mistakes only

        if isinstance(problem, IsADirectoryError):
            raise error("E1002", f"'{path}' is a folder, not a file", None, help="name a file in it") from None
        if isinstance(problem, FileNotFoundError):
            raise error("E1001", f"there is no file '{path}'", None, help=_instead_of(path)) from None
        raise error("E1003", f"cannot read '{path}': {getattr(problem, 'strerror', problem)}", None) from None


def _instead_of(path: str) -> str | None:
    """What a file that is not there may have been: one beside it of nearly its name."""
    from ptxdsl.diagnostics import nearest  # for mistakes only

    if os.path.islink(path):
        return f"it is a link to '{os.readlink(path)}', which is not there"
    folder, name = os.path.split(path)
    try:
        close = nearest(name, os.listdir(folder or "."))
    except OSError:
        return f"there is no folder '{folder}' either"
    return f"did you mean '{os.path.join(folder, close)}'?" if close else None


def search_folders(program: str, include: Sequence[str]) -> tuple[str, ...]:
    """Where the modules of a program lie: the folder of its file, if it is one, and the given ones."""
    own = () if program.startswith("<") else (os.path.dirname(program),)
    return (*own, *include)


def find_module(importing: str, module: str, folders: Sequence[str]) -> str | None:
    """The path of a user's module, spelled from the folder that it is found in: the importing file's, then ``folders``.

    module: as it is imported, with its leading dots; no other folders than the importing file's, or one above it, are
    looked at where it has any. Raises LeavesFolderError.
    """
    name = module.lstrip(".")
    parts = name.split(".") if name else []
    if not all(part.isidentifier() for part in parts):
        return None
    allowed = folders if importing.startswith("<") else (*folders, os.path.dirname(importing))
    for folder in _places(importing, len(module) - len(name), allowed):
        for form in _FILE_FORMS if parts else _FILE_FORMS[2:]:
            path = os.path.join(folder, form.format("/".join(parts)).lstrip("/"))
            if os.path.isfile(path):
                if not _is_below(os.path.dirname(os.path.realpath(path)), allowed):
                    raise LeavesFolderError
                return path
    return None


def is_folder(path: str) -> bool:
    return os.path.isdir(path)


def modules_near(importing: str, module: str, folders: Sequence[str]) -> Iterator[str]:
    """What could be imported in place of a module that is not there: the files in its folder, as it is written."""
    name = module.lstrip(".")
    outer, dot, _ = name.rpartition(".")
    for folder in _places(importing, len(module) - len(name), folders):
        try:
            entries = sorted(os.listdir(os.path.join(folder or ".", *outer.split("."))))
        except (OSError, ValueError):
            continue
        for entry in entries:
            stem, suffix = os.path.splitext(entry)
            if suffix in (".pdsl", ".mojo") and stem.isidentifier():
                yield module[: len(module) - len(name)] + outer + dot + stem


def _places(importing: str, dots: int, folders: Sequence[str]) -> Iterator[str]:
    if not importing.startswith("<"):
        own = os.path.dirname(importing)
        if dots > 1:
            own = os.path.normpath(os.path.join(own, *[".."] * (dots - 1)))
            if not _is_below(own, folders):
                raise LeavesFolderError
            own = "" if own == "." else own
        yield own
    if dots == 0:
        yield from folders


def _is_below(folder: str, folders: Sequence[str]) -> bool:
    """Whether a folder is one of these, or below one."""
    inner = os.path.join(os.path.realpath(folder), "")
    return any(inner.startswith(os.path.join(os.path.realpath(outer), "")) for outer in folders)
