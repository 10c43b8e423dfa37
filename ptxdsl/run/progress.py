"""A line on a terminal that says how far a long simulation is; nothing where there is no terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from ptxdsl.sim.limits import Progress

_QUIET_SECONDS = 0.5  # a run that is over by then shows no bar
_WIDTH = 24


@contextmanager
def progress_bar(stream: IO[str] | None) -> Iterator[Callable[[Progress], None] | None]:
    """Gives what the simulator calls now and then; the line is gone at the end."""
    if stream is None or not stream.isatty():
        yield None
        return
    start = time.monotonic()
    shown = False

    def show(progress: Progress) -> None:
        nonlocal shown
        if time.monotonic() - start < _QUIET_SECONDS:
            return
        shown = True
        stream.write(f"\r\x1b[K{bar(progress, time.monotonic() - start)}")
        stream.flush()

    try:
        yield show
    finally:
        if shown:
            stream.write("\r\x1b[K")
            stream.flush()


def bar(progress: Progress, seconds: float) -> str:
    """``[######------] 12 of 96 blocks, 3.4 G thread-instructions, 5 s``."""
    done = _WIDTH * progress.ctas // max(progress.grid, 1)
    count = float(progress.thread_instructions)
    for unit in ("", "k", "M", "G", "T"):
        if count < 1000 or unit == "T":
            break
        count /= 1000
    blocks = f"{progress.ctas} of {progress.grid} blocks"
    return f"[{'#' * done}{'-' * (_WIDTH - done)}] {blocks}, {count:.3g} {unit} thread-instructions, {seconds:.0f} s"
