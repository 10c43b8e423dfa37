"""Processes of Python that run a module of ours."""

from __future__ import annotations

import sys


def command_of(module: str, *arguments: str) -> list[str]:
    """The command line. The process looks for modules where this one does, in the same order: what stands beside an
    installed package hides no module of Python's library."""
    run = f"from runpy import run_module; run_module({module!r}, None, '__main__', True)"
    return [sys.executable, "-P", "-c", f"import sys; sys.path[:] = {sys.path!r}; {run}", *arguments]
