"""``ptxdsl check``: what is found in each file, and the verdicts on its kernels; of several files also the counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ptxdsl.command.findings import findings
from ptxdsl.command.json_diagnostics import show_traceback
from ptxdsl.command.settings import constants_of, options_of
from ptxdsl.command.streams import OK, command_error, read_input, tell, write, write_lines
from ptxdsl.diagnostics import Diagnostic, DiagnosticSink, counted
from ptxdsl.driver import Job
from ptxdsl.files.output_files import check_outputs, make_folder, write_file
from ptxdsl.imports import source_of
from ptxdsl.record import dataclass, field
from ptxdsl.unhandled import diagnostics_of

if TYPE_CHECKING:
    from ptxdsl.check.report import Verdict
    from ptxdsl.command.command_line import Arguments
    from ptxdsl.source import Source


@dataclass
class _Checked:
    """A file. source: None where it cannot be read. witnesses: paths of files by kernel."""

    name: str
    found: Sequence[Diagnostic]
    verdicts: Sequence[Verdict] = ()
    source: Source | None = None
    witnesses: Mapping[str, list[str]] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        """How many kernels have which verdict, and how many diagnostics there are, in the order of a report."""
        from ptxdsl.check.report import FAULT, PROVED, UNPROVED

        named = {"proved": PROVED, "faults": FAULT, "not_provable": UNPROVED}
        kernels = {name: sum(v.verdict == verdict for v in self.verdicts) for name, verdict in named.items()}
        said = {f"{severity}s": sum(d.severity == severity for d in self.found) for severity in ("error", "warning")}
        return kernels | said

    def verdicts_as_json(self) -> list[dict[str, Any]]:
        return [
            {"file": self.name, **verdict.as_json(), "witnesses": self.witnesses.get(verdict.kernel, [])}
            for verdict in self.verdicts
        ]


def check(arguments: Arguments) -> int:
    """The command; its exit code. Raises CompileError for options that cannot be used."""
    files = list(dict.fromkeys(arguments.files))
    _prepare(arguments, files)
    constants = constants_of(arguments.constants)
    checked = (_checked(arguments, file, constants) for file in files)
    if arguments.json or arguments.sarif is not None:
        return _as_document(arguments, list(checked))
    if len(files) == 1:
        (one,) = checked
        return tell(partial(_write_one, arguments, one), one.found, False)
    return _one_by_one(checked)


def _prepare(arguments: Arguments, files: Sequence[str]) -> None:
    """What is to be known before anything is looked at."""
    if arguments.sarif not in (None, "-"):
        check_outputs([("--sarif", arguments.sarif)], files)
    if arguments.witness is not None:
        if len(files) > 1:
            raise command_error("E1030", "--witness is for one file", help="check the faulty file by itself")
        make_folder(arguments.witness)


def _checked(arguments: Arguments, file: str, constants: Mapping[str, str]) -> _Checked:
    try:
        name, data = read_input(file)
        source = source_of(data, name)
        job = Job(source, arguments.kernel, constants, options_of(arguments, source))
        return _Checked(name, *findings(job, arguments.block, arguments.cluster), source)
    except Exception as problem:  # the other files are looked at all the same
        show_traceback(problem)
        return _Checked(file, diagnostics_of(problem))


def _as_document(arguments: Arguments, checked: Sequence[_Checked]) -> int:
    """All files in one document: JSON on standard error, SARIF in a file."""
    found = _all_found(checked)
    verdicts: list[dict[str, Any]] = []

    def answer() -> None:
        if arguments.sarif is not None:
            from ptxdsl.command.sarif import sarif

            write(sarif(found)) if arguments.sarif == "-" else write_file(arguments.sarif, sarif(found))
        for one in checked:
            _find_witnesses(arguments, one)
            verdicts.extend(one.verdicts_as_json())

    files = [{"file": one.name, **one.counts()} for one in checked]
    return tell(answer, found, arguments.json, verdicts=verdicts, files=files)


def _all_found(checked: Sequence[_Checked]) -> list[Diagnostic]:
    """Of all files; once where several import what it is in."""
    sink = DiagnosticSink()
    for one in checked:
        for diagnostic in one.found:
            sink.add(diagnostic)
    return sink.items


def _write_one(arguments: Arguments, one: _Checked) -> None:
    write_lines(verdict.text for verdict in one.verdicts)
    write_lines(_find_witnesses(arguments, one))


def _find_witnesses(arguments: Arguments, one: _Checked) -> list[str]:
    """Writes launches that show a file's faults, where they are asked for; what is to be said of it."""
    if arguments.witness is None or one.source is None:
        return []
    from ptxdsl.command.counterexamples import write_witnesses

    lines, one.witnesses = write_witnesses(arguments, one.source, constants_of(arguments.constants), one.verdicts)
    return lines


def _one_by_one(checked: Iterator[_Checked]) -> int:
    """Each file's verdicts and diagnostics as soon as they are known, then the counts."""
    code, sink = OK, DiagnosticSink()
    totals: dict[str, int] = {}
    summary = []
    failed = 0
    for one in checked:
        known = len(sink.items)
        for diagnostic in one.found:
            sink.add(diagnostic)
        lines = [f"{one.name}: {verdict.text}" for verdict in one.verdicts]
        code = max(code, tell(partial(write_lines, lines), sink.items[known:], False))
        counts = one.counts()
        summary.append(f"{one.name}: {_in_words(counts)}")
        totals = {name: totals.get(name, 0) + count for name, count in counts.items()}
        failed += counts["errors"] > 0
    summary.append(f"{len(summary)} files: {_in_words(totals)}; {failed or 'none'} with errors")
    return max(code, tell(partial(write_lines, summary), (), False))


def _in_words(counts: Mapping[str, int]) -> str:
    words = {
        "proved": f"{counts['proved']} proved",
        "faults": counted(counts["faults"], "fault"),
        "not_provable": f"{counts['not_provable']} not provable here",
        "errors": counted(counts["errors"], "error"),
        "warnings": counted(counts["warnings"], "warning"),
    }
    return ", ".join(text for name, text in words.items() if counts[name]) or "nothing to prove, no errors"
