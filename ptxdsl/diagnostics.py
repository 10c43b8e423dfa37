"""Diagnostics: what every user mistake becomes. A code, exact spans with carets, and help."""

from __future__ import annotations

from collections.abc import Iterable

from ptxdsl.hints import Literal
from ptxdsl.record import dataclass, field, replace
from ptxdsl.source import Span

Severity = Literal["error", "warning", "note"]


MOST_PROBLEMS = 50  # of a text; who has so many mends the first ones and asks again
MOST_CALLS = 4  # of a chain of calls, the inner ones, that are told


@dataclass(frozen=True)
class Trip:
    """How often somebody has gone round the loops around a place when it happens.

    who: ``warp 1``. span: what is done. loops: those around it, the innermost first: each with the number of the trip,
    counted from 1.
    """

    who: str
    span: Span
    loops: tuple[tuple[Span, int], ...]

    def __str__(self) -> str:
        """``warp 1, in trip 3 of the loop at line 20``."""
        (inner, trip), *around = self.loops
        said = f"{self.who}, in trip {trip} of the loop at {self._place(inner)}"
        return said + "".join(f", in trip {trip} of that at {self._place(loop)}" for loop, trip in around)

    def _place(self, loop: Span) -> str:
        """Its line, and the file where that is another one."""
        return f"line {loop.line}" if loop.source.name == self.span.source.name else f"{loop.source.name}:{loop.line}"


@dataclass(frozen=True)
class Diagnostic:
    """One finding.

    ``code`` is stable (``E0301``) and has a long form in ``explanations``. ``span`` may be None only where there is no
    text to point at (an unreadable file, a bad option). ``notes`` are secondary spans with their labels; calls
    through which a kernel comes to any of these places are added to them. ``trips`` are of these spans, where it is
    known.
    """

    code: str
    message: str
    span: Span | None = None
    notes: tuple[tuple[Span, str], ...] = ()
    help: str | None = None
    severity: Severity = "error"
    trips: tuple[Trip, ...] = ()

    def __post_init__(self) -> None:
        if any(span is not None and span.calls for span in (self.span, *(span for span, _ in self.notes))):
            object.__setattr__(self, "notes", self._notes_with_calls())

    def _notes_with_calls(self) -> tuple[tuple[Span, str], ...]:
        """The notes, and behind each place in a function that was expanded the calls that led there."""
        kept: list[tuple[Span, str]] = []
        for place, label in ((self.span, None), *self.notes):
            if label is not None and place is not None:
                kept.append((place, label))
            calls = [(call, f"in this call of `{name}`") for call, name in (() if place is None else place.calls)]
            kept += [note for note in calls[:MOST_CALLS] if note not in self.notes and note not in kept]
        return tuple(kept)

    def trips_at(self, span: Span) -> str:
        """Who is in which trip at one of its places, in words; empty where that is not known."""
        return "; ".join([str(trip) for trip in self.trips if trip.span == span])

    def render(self, color: bool = False) -> str:
        from ptxdsl.render import render  # for mistakes only

        return render(self, color)

    def __repr__(self) -> str:
        """``<error E0301 at a.pdsl:3:13: cannot add Int and Int32>``, without the sources that spans lead to."""
        place = "" if self.span is None else f" at {self.span}"
        return f"<{self.severity} {self.code}{place}: {self.message}>"


class _DiagnosticsError(Exception):
    def __init__(self, diagnostics: Diagnostic | Iterable[Diagnostic]) -> None:
        if isinstance(diagnostics, Diagnostic):
            diagnostics = (diagnostics,)
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return "\n\n".join(d.render() for d in self.diagnostics)


class CompileError(_DiagnosticsError):
    """Raised with one or more diagnostics; nothing else leaves the compiler for a user's mistake."""

    def noted(self, span: Span, label: str) -> CompileError:
        """The same with a note to each diagnostic that lies elsewhere; a long chain of calls gives its inner four."""
        return type(self)(
            d if d.span is None or d.span == span or len(d.notes) >= MOST_CALLS
            else replace(d, notes=(*d.notes, (span, label)))
            for d in self.diagnostics
        )  # fmt: skip


class LaunchError(_DiagnosticsError):
    """A kernel could not be loaded or launched; ``diagnostics`` say why (codes E09xx)."""


def error(
    code: str,
    message: str,
    span: Span | None,
    *notes: tuple[Span, str],
    help: str | None = None,
) -> CompileError:
    """``raise error("E0301", "…", node.span, (decl.span, "declared here"), help="…")``."""
    return CompileError(Diagnostic(code, message, span, tuple(notes), help))


def counted(number: int, noun: str) -> str:
    """``1 argument``, ``2 arguments``: for messages."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that a misspelt name was probably meant to be, for a message's "did you mean"."""
    import difflib  # for mistakes only

    return next(iter(difflib.get_close_matches(name, list(dict.fromkeys(candidates)), n=1, cutoff=0.7)), None)


def launch_error(code: str, message: str, span: Span | None = None, help: str | None = None) -> LaunchError:
    return LaunchError(Diagnostic(code, message, span, help=help))


@dataclass
class DiagnosticSink:
    """Collects diagnostics so that one run reports many."""

    items: list[Diagnostic] = field(default_factory=list)
    _known: set[tuple[str, str, Span | None]] = field(default_factory=set)  # told once, however it is reached

    def add(self, problem: Diagnostic | CompileError) -> None:
        new = problem.diagnostics if isinstance(problem, CompileError) else (problem,)
        for diagnostic in new:
            span = diagnostic.span
            key = (diagnostic.code, diagnostic.message, None if span is None else span.plain)
            if key not in self._known:
                self._known.add(key)
                self.items.append(diagnostic)

    @property
    def full(self) -> bool:
        """Whether so much was found that no more is looked for."""
        return len(self.items) >= MOST_PROBLEMS

    def raise_errors(self) -> None:
        errors = [d for d in self.items if d.severity == "error"]
        if errors:
            raise CompileError(self.items)
