"""A line on a terminal that says how far a long simulation or tuning is; nothing where there is no terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

from ptxdsl.sim.limits import Progress

_QUIET_SECONDS = 0.5  # a run that is over by then shows no bar
_WIDTH = 24


# Shows a line, made by a function of the seconds so far.
Show = Callable[[Callable[[float], str]], None]


@contextmanager
def status_line(stream: IO[str] | None) -> Iterator[Show | None]:
    """Gives what shows a line in the place of the last one, None where there is no terminal; it is gone at the end."""
    if stream is None or not stream.isatty():
        yield None
        return
    start = time.monotonic()
    shown = False

    def write(text: str) -> None:
        with suppress(OSError, ValueError):  # the terminal has gone, the run goes on
            stream.write(f"\r\x1b[K{text}")
            stream.flush()

    def show(line: Callable[[float], str]) -> None:
        nonlocal shown
        seconds = time.monotonic() - start
        if seconds < _QUIET_SECONDS:
            return
        shown = True
        write(line(seconds))

    try:
        yield show
    finally:
        if shown:
            write("")


@contextmanager
def progress_bar(stream: IO[str] | None) -> Iterator[Callable[[Progress], None] | None]:
    """Gives what the simulator calls now and then."""
    with status_line(stream) as show:
        yield None if show is None else lambda progress: show(lambda seconds: bar(progress, seconds))


def gauge(done: int, of: int) -> str:
    """``[######------]``."""
    full = _WIDTH * done // max(of, 1)
    return f"[{'#' * full}{'-' * (_WIDTH - full)}]"


def bar(progress: Progress, seconds: float) -> str:
    """``[######------] 12 of 96 blocks, 3.4 G thread-instructions, 5 s``."""
    count = float(progress.thread_instructions)
    for unit in ("", "k", "M", "G", "T"):
        if count < 1000 or unit == "T":
            break
        count /= 1000
    blocks = f"{progress.ctas} of {progress.grid} blocks"
    done = gauge(progress.ctas, progress.grid)
    return f"{done} {blocks}, {count:.3g} {unit} thread-instructions, {seconds:.0f} s"
