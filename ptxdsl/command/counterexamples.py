"""Witnesses as files: of the faults that ``ptxdsl check`` has found, and of what ``ptxdsl run --explore`` has seen."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING

from ptxdsl.command.settings import options_of
from ptxdsl.explore.counterexample import Fault, find, made_up_not, summary, values_of
from ptxdsl.explore.explore import Exploration, Outcome, arrays_of, explore_runs
from ptxdsl.files.output_files import write_file
from ptxdsl.options import Options
from ptxdsl.record import replace
from ptxdsl.run.binding import Bound
from ptxdsl.run.places import Shape, in_simulator
from ptxdsl.run.subject import Subject, compiled_subject
from ptxdsl.run.witness import Launch, Witness

if TYPE_CHECKING:
    from ptxdsl.check.report import Verdict
    from ptxdsl.command.command_line import Arguments
    from ptxdsl.sim.launch import Report
    from ptxdsl.sim.limits import Limits
    from ptxdsl.sim.machine.schedule import Schedule
    from ptxdsl.sim.watch import Watch
    from ptxdsl.source import Source


def write_witnesses(
    arguments: Arguments, source: Source, constants: Mapping[str, str], verdicts: Sequence[Verdict]
) -> tuple[list[str], dict[str, list[str]]]:
    """For each fault a file, where one is found. What is to be said of that, and the files by kernel.

    Raises CompileError for arguments that do not fit and for files that cannot be written.
    """
    faulty = [verdict for verdict in verdicts if verdict.shows_with]
    folder = arguments.witness or "."
    lines: list[str] = []
    files: dict[str, list[str]] = {}
    given = {name: text for name, _, text in (entry.partition("=") for entry in arguments.args or ())}
    options = replace(options_of(arguments, source), check="off")
    names = _source_names(source, arguments.kernel, constants, options) if faulty else {}
    for verdict in faulty:
        subject = compiled_subject(source, names[verdict.kernel], constants, options)
        found = zip(verdict.diagnostics, verdict.kinds, verdict.shows_with, strict=False)
        for number, (diagnostic, kind, values) in enumerate(found):
            code = diagnostic.code
            missing = [path for path in made_up_not(subject.signature.params) if path not in given]
            if missing:
                lines.append(f"{code}: no witness without --arg {missing[0]}=…, which cannot be made up")
                continue
            fault = Fault(diagnostic, kind, values_of(values))
            witness = find(subject, fault, verdict.block, verdict.cluster, given, constants)
            if witness is None:
                lines.append(f"{code}: no launch and schedule found that show it in the simulator")
                continue
            path = os.path.join(folder, f"{verdict.kernel}-{code}{f'-{number + 1}' if number else ''}.json")
            write_file(path, witness.to_json())
            files.setdefault(verdict.kernel, []).append(path)
            lines.append(f"{code}: ptxdsl run {quote(source.name)} --schedule {quote(path)}  shows {witness.shows}")
    return lines, files


def _source_names(source: Source, kernel: str | None, constants: Mapping[str, str], options: Options) -> dict[str, str]:
    """The kernels' names in the text by those in the PTX."""
    from ptxdsl.artifact import Compiled
    from ptxdsl.driver import compile_source

    compiled = compile_source(source, kernel=kernel, constants=constants, options=options)
    assert isinstance(compiled, Compiled)
    return {name: signature.source_name or name for name, signature in compiled.signatures.items()}


# ------------------------------------------------------------------------------------------------- exploration


def explored(
    subject: Subject, fresh: Callable[[], Bound], shape: Shape, limits: Limits
) -> tuple[Exploration, Callable[[Outcome], Bound]]:
    """All interleavings of a launch, and what replays one of them. fresh: gives the arguments anew."""
    bound = fresh()

    def run(schedule: Schedule, watch: Watch) -> Report:
        return in_simulator(subject, bound, shape, schedule=schedule, limits=limits, watch=watch, record=True)

    def replay(outcome: Outcome) -> Bound:
        from ptxdsl.sim.machine.schedule import Schedule

        again = fresh()
        schedule = Schedule("recorded", recorded=outcome.schedule, fuel=outcome.schedule.fuel)
        in_simulator(subject, again, shape, schedule=schedule, limits=limits)
        return again

    return explore_runs(run, arrays_of([array for array, _ in bound.arrays.values()])), replay


def outcome_files(folder: str, launch: Launch, exploration: Exploration) -> Iterator[tuple[str, str]]:
    """For each outcome the path of a file and what belongs in it."""
    several = sum(outcome.results is not None for outcome in exploration.outcomes) > 1
    for number, outcome in enumerate(exploration.outcomes):
        ended = outcome.status != "finished" and outcome.diagnostics
        shows = summary(outcome.diagnostics[0]) if ended else f"results {outcome.results}"
        path = os.path.join(folder, f"{launch.kernel}-{number}-{outcome.status}.json")
        yield path, Witness(launch, outcome.schedule, shows, differs=several and not ended).to_json()
