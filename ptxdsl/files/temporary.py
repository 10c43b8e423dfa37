"""Folders for the files of tools that read and write files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ptxdsl.diagnostics import error


@contextmanager
def temporary_folder() -> Iterator[str]:
    """Gives the path of a folder that is gone at the end. Raises E1009 where the system has none, or no room in it."""
    import tempfile

    try:
        with tempfile.TemporaryDirectory(prefix="ptxdsl-") as folder:
            yield folder
    except OSError as problem:
        help = "TMPDIR in the environment names another folder"
        raise error("E1009", f"no temporary files can be written: {problem.strerror}", None, help=help) from None
