"""Files of programs: their bytes, and where a module beside an importing file lies."""

from __future__ import annotations

import os

# ``module``: a user's own module; the suffixes in the order in which they are looked for.
_FILE_FORMS = ("{}.pdsl", "{}.mojo", "{}/__init__.pdsl", "{}/__init__.mojo")

# No kernel is so long: a device or a stray binary is meant.
SIZE_LIMIT = 16 << 20  # bytes


class LeavesFolderError(Exception):
    """A module's file is a link to a place outside the importing file's folder."""


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


def find_module(importing: str, module: str) -> str | None:
    """The path of a user's module, spelled from the path of the file that imports it. Raises LeavesFolderError."""
    parts = module.split(".")
    if importing.startswith("<") or not all(part.isidentifier() for part in parts):
        return None
    folder = os.path.dirname(importing)
    for form in _FILE_FORMS:
        path = os.path.join(folder, form.format("/".join(parts)))
        if not os.path.isfile(path):
            continue
        root = os.path.realpath(folder or ".")
        if not os.path.realpath(path).startswith(os.path.join(root, "")):
            raise LeavesFolderError
        return path
    return None
