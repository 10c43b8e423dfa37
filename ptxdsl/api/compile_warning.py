"""What a compilation warns of, as Python warns: once for each kernel and target, at the line that launches it."""

from __future__ import annotations

import sys
import warnings

from ptxdsl.compiled import Compiled

_PACKAGE = __name__.partition(".")[0]


class CompileWarning(UserWarning):
    """A kernel that is launched was compiled with a warning, such as a fault that the checker has found.

    ``kernel.compile().warnings`` has the diagnostics. A module loaded with ``check="error"`` refuses faulty kernels,
    with ``check="off"`` nobody looks for faults.
    """


def warn_of(compiled: Compiled) -> None:
    for diagnostic in compiled.warnings:
        if diagnostic.severity == "warning":
            warnings.warn(diagnostic.render(False), CompileWarning, stacklevel=_frames_of_this_package())


def _frames_of_this_package() -> int:
    """How many frames, from the caller's on, lead to code that is not of this package."""
    frame, count = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame, count = frame.f_back, count + 1
    return count
