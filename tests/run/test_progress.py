"""The progress bar: only on a terminal, only for long runs, and gone afterwards."""

import io

from ptxdsl.run import progress
from ptxdsl.sim.limits import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_line():
    line = progress.bar(Progress(12, 96, 3_400_000_000, 5), 5.2)
    assert line == "[###---------------------] 12 of 96 blocks, 3.4 G thread-instructions, 5 s"


def test_nothing_without_a_terminal():
    with progress.progress_bar(io.StringIO()) as show:
        assert show is None
    with progress.progress_bar(None) as show:
        assert show is None


def test_shown_late_and_wiped(monkeypatch):
    terminal = Terminal()
    with progress.progress_bar(terminal) as show:
        show(Progress(0, 4, 10, 1))
        assert terminal.getvalue() == ""
        monkeypatch.setattr(progress, "_QUIET_SECONDS", 0)
        show(Progress(1, 4, 10, 1))
        assert "1 of 4 blocks" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
