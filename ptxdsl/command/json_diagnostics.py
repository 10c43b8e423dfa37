"""What the command says beside its answer: diagnostics on standard error, as texts or as one JSON object."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from ptxdsl.diagnostics import CompileError, Diagnostic, Trip
from ptxdsl.source import Span

# The version of the form of ``--json``'s output, of all commands.
JSON_SCHEMA = 4


def report(diagnostics: Sequence[Diagnostic], as_json: bool, **more: Mapping[str, Any] | Sequence[Any]) -> bool:
    """Prints diagnostics to standard error; whether there is an error among them.

    more: what a command adds to the JSON: ``verdicts`` and ``files`` of ``check``, ``run`` of ``run``.
    """
    if as_json:
        import json

        _tell(json.dumps({"schema": JSON_SCHEMA, "diagnostics": [_as_json(d) for d in diagnostics], **more}))
    elif diagnostics and sys.stderr is not None:
        color = _wants_color(sys.stderr)
        _tell("\n\n".join(d.render(color) for d in diagnostics))
    return any(d.severity == "error" for d in diagnostics)


def _tell(text: str) -> None:
    """To standard error, where there is one; the exit code stands if it cannot be told."""
    try:
        if sys.stderr is not None:
            print(text, file=sys.stderr, flush=True)
    except BrokenPipeError:
        silence(sys.stderr)
    except OSError:
        pass


def silence(stream: IO[str]) -> None:
    """Its reader has gone: nothing more to say, and Python must not complain at exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def show_traceback(defect: BaseException | None) -> None:
    """Where in the compiler an internal error came from, for those who asked for it."""
    if isinstance(defect, CompileError):  # no defect, unless one is behind it
        defect = defect.__cause__
    if defect is not None and os.environ.get("PTXDSL_DEBUG") == "1":
        import traceback

        traceback.print_exception(defect)


def _wants_color(stream: Any) -> bool:
    return bool(stream.isatty()) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _as_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """The stable form: keys are added with a new schema number, never renamed."""
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        **_place(diagnostic.span),
        "notes": [{"message": label, **_place(span)} for span, label in diagnostic.notes],
        "help": diagnostic.help,
        "trips": [trip_as_json(trip, _place) for trip in diagnostic.trips],
    }


def trip_as_json(trip: Trip, place: Callable[[Span], dict[str, Any]]) -> dict[str, Any]:
    """place: how spans are told."""
    loops = [{"trip": number, **place(loop)} for loop, number in trip.loops]
    return {"who": trip.who, **place(trip.span), "loops": loops}


def _place(span: Span | None) -> dict[str, Any]:
    """1-based lines and columns in characters; the end is exclusive."""
    if span is None:
        return {"file": None, "start": None, "end": None}
    line, column = span.source.position(span.start)
    end_line, end_column = span.source.position(span.end)
    return {
        "file": span.source.name,
        "start": {"line": line, "column": column},
        "end": {"line": end_line, "column": end_column},
    }
