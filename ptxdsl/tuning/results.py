"""The results file of a tuning: a line of JSON for each configuration, so that another run can go on.

A line names what it is the result of by a digest, and ends with a checksum of itself: one that was cut off or changed
is told and measured again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from ptxdsl.api.constant_texts import constants
from ptxdsl.diagnostics import Diagnostic, LaunchError, launch_error
from ptxdsl.files.digest import digest
from ptxdsl.record import dataclass

_SUM_DIGITS = 16
# What another run may do better: the executor failed, not the kernel.
UNFINISHED = frozenset({"E0943"})


@dataclass(frozen=True)
class Trial:
    """A configuration and its result. time: the median of ``runs`` launches, in microseconds (``unit`` ``us``), or in
    the simulator's cycles; low and high: the shortest and the longest. code and message: what went wrong, if it did."""

    configuration: Mapping[str, Any]
    time: float | None = None
    low: float | None = None
    high: float | None = None
    runs: int = 0
    unit: str = "us"
    code: str | None = None
    message: str | None = None


_FIELDS = ("time", "low", "high", "runs", "unit", "code", "message")


_START = b'{"task": '  # of a line as it is written


class ResultsFile:
    """path: None for no file. Raises LaunchError E0944 for one that cannot be read or written.

    warnings: W0940 for each damaged line.
    """

    def __init__(self, path: str | None) -> None:
        self.path = path
        self.warnings: list[Diagnostic] = []
        self._known: dict[str, dict[str, Any]] = {}
        self._whole = True  # the last line has its end
        if path is not None:
            self._read(path)

    def _read(self, path: str) -> None:
        try:
            if os.path.exists(path) and not os.path.isfile(path):
                raise OSError(0, "it is not a file")
            with open(path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return
        except (OSError, ValueError) as problem:  # ValueError: a NUL in the path
            raise _trouble("read", path, problem) from None
        self._whole = not data or data.endswith(b"\n")
        lines = data.splitlines()
        if any(map(bytes.strip, lines)) and not any(line.startswith(_START) for line in lines):
            raise _trouble("written", path, OSError(0, "it has something else in it"))
        for number, line in enumerate(lines, start=1):
            row = _parsed(line)
            if row is not None:
                self._known[row["task"]] = row
            elif line.strip():
                message = f"line {number} of '{path}' is damaged: what it was the result of is measured again"
                self.warnings.append(Diagnostic("W0940", message, severity="warning"))

    def find(self, task: str, configuration: Mapping[str, Any]) -> Trial | None:
        """What is known of a task, if that is finished."""
        row = self._known.get(task)
        if row is None or row["code"] in UNFINISHED:
            return None
        return Trial(configuration, **{name: row[name] for name in _FIELDS})

    def append(self, task: str, what: Mapping[str, Any], trial: Trial) -> None:
        """A line more, written at once and whole. what: for readers. Raises LaunchError E0944."""
        if self.path is None:
            return
        row = {"task": task, **what, "configuration": _plain(trial.configuration)}
        row |= {name: getattr(trial, name) for name in _FIELDS}
        text = json.dumps(row, ensure_ascii=False)
        line = f'{text[:-1]}, "sum": "{_sum(text)}"}}\n'
        data = (line if self._whole else "\n" + line).encode()
        try:
            # one write to the end of the file: lines of two processes do not mix
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                self._whole = False
                if os.write(handle, data) != len(data):
                    raise OSError(0, "only a part of the line could be written")
                self._whole = True
            finally:
                os.close(handle)
        except OSError as problem:
            raise _trouble("written", self.path, problem) from None


def _sum(text: str) -> str:
    return digest(text.encode())[:_SUM_DIGITS]


def _parsed(line: bytes) -> dict[str, Any] | None:
    """A row, None for a line that is not as it was written."""
    text, mark, rest = line.decode("utf-8", "replace").rpartition(', "sum": "')
    if not mark or rest != f'{_sum(text + "}")}"}}':
        return None
    row = json.loads(text + "}")
    return row if isinstance(row, dict) and {"task", *_FIELDS} <= row.keys() else None


def _plain(value: Any) -> Any:
    """A value as JSON has it; a dtype as the text of its constant."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return constants({"value": value})[0][1]


def _trouble(what: str, path: str, problem: Exception) -> LaunchError:
    words = getattr(problem, "strerror", None) or problem
    return launch_error("E0944", f"the results file '{path}' cannot be {what}: {words}")
