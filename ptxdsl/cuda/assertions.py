"""What the driver prints of failed assertions, and the lines of the kernel that it names."""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ptxdsl.artifact import Compiled
from ptxdsl.record import dataclass
from ptxdsl.source import Span

_STANDARD_ERROR = 2
_aside = threading.Lock()  # held while the process's standard error goes elsewhere
_LINE = re.compile(r"^(?P<file>[^\n]*?):(?P<line>\d+): [^\n]*?\bAssertion `(?P<words>[^\n]*)` failed", re.MULTILINE)


class Output:
    """text: what went to standard error while it was listened to."""

    def __init__(self) -> None:
        self.text = ""


@contextmanager
def listening() -> Iterator[Output]:
    """Keeps what the process writes to standard error, the driver above all, and writes it there at the end.

    Where standard error cannot be turned aside, or another thread has done it, nothing is kept.
    """
    output = Output()
    if not _aside.acquire(blocking=False):
        yield output
        return
    try:
        with ExitStack() as stack:
            try:
                outside = os.dup(_STANDARD_ERROR)
                stack.callback(os.close, outside)
                file = stack.enter_context(tempfile.TemporaryFile())
            except OSError:
                yield output
                return
            os.dup2(file.fileno(), _STANDARD_ERROR)
            try:
                yield output
            finally:
                os.dup2(outside, _STANDARD_ERROR)
                file.seek(0)
                data = file.read()
                output.text = data.decode("utf-8", "replace")
                if data:
                    os.write(_STANDARD_ERROR, data)
    finally:
        _aside.release()


@dataclass(frozen=True)
class Assertion:
    """span: of its line, None where the artifact does not know it. threads: in how many it is said to have failed."""

    words: str
    span: Span | None
    threads: int


def failed_assertion(text: str, compiled: Compiled) -> Assertion | None:
    """The first assertion that the driver's text names; None where it names none."""
    found = [match.group("file", "line", "words") for match in _LINE.finditer(text)]
    if not found:
        return None
    file, line, words = found[0]
    same = [s for s in compiled.line_map if s and os.path.basename(s.source.name) == file and s.line == int(line)]
    # the call begins before its condition
    return Assertion(words, min(same, key=lambda span: span.start, default=None), found.count(found[0]))
