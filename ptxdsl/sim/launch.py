"""The simulator's entry point: ``simulate`` runs one kernel of a PTX text and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any, Unpack

from ptxdsl.artifact import SharedName
from ptxdsl.diagnostics import CompileError, Diagnostic, launch_error
from ptxdsl.ptx.module import Module
from ptxdsl.ptx.reader import read
from ptxdsl.record import dataclass, field, field_names
from ptxdsl.shown import shown, shown_with_type
from ptxdsl.sim.arguments import bind, check_shape
from ptxdsl.sim.float_environment import default_floats
from ptxdsl.sim.limits import MEMORY_LIMIT, LimitReached, Limits, Statistics
from ptxdsl.sim.machine.faults import DIVERGENT, INTERRUPTED, Note, Places, SimulationFault, at_source
from ptxdsl.sim.machine.machine import Machine
from ptxdsl.sim.machine.memory import Memory
from ptxdsl.sim.machine.schedule import Recording, Schedule, parse_schedule
from ptxdsl.sim.machine.timeline import Event
from ptxdsl.sim.machine.whereabouts import whereabouts
from ptxdsl.sim.program.program import build
from ptxdsl.sim.run_options import RunOptions
from ptxdsl.sim.translate.warp_code import WarpCode, translate
from ptxdsl.source import Span
from ptxdsl.whole import whole

__all__ = ["Limits", "Report", "simulate"]

_WARP_SIZE = 32
_CACHED = 16  # compiled kernels


@dataclass(slots=True, eq=False, repr=False)
class Report:
    """The result of a simulation.

    status: ``finished``, ``deadlock``, ``fault``, ``limit`` or ``interrupted``. diagnostics: the reasons, and warnings.
    schedule: the one that was followed; recording: its turns, if asked for. events: of the timeline, in the order in
    which they were simulated; events_cut: how many more there were than are kept. output: what the kernel printed.
    line_map: the source span of each PTX line, for displaying the events.
    """

    kernel: str
    status: str
    diagnostics: tuple[Diagnostic, ...]
    statistics: Statistics
    schedule: Schedule
    recording: Recording | None = None
    events: list[Event] = field(default_factory=list)
    events_cut: int = 0
    output: str = ""
    line_map: Sequence[Span | None] = ()

    @property
    def finished(self) -> bool:
        """Whether the kernel ran to its end."""
        return self.status == "finished"

    def render(self, color: bool = False) -> str:
        """The status and all diagnostics as text."""
        head = f"kernel '{self.kernel}': {self.status}"
        return "\n\n".join([head, *(d.render(color) for d in self.diagnostics)])

    def __repr__(self) -> str:
        return f"<ptxdsl report: kernel '{self.kernel}' {self.status}, {self.counts}>"

    @property
    def counts(self) -> str:
        """The sizes of the run in words."""
        counts = self.statistics
        return f"{counts.thread_instructions:,} thread-instructions, {counts.cycles:,} cycles of the model"


@default_floats()
def simulate(
    ptx: str | bytes | Module,
    kernel: str | None = None,
    *,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    cluster: int | Sequence[int] | None = None,
    shared_bytes: int = 0,
    cooperative: bool = False,
    arguments: Sequence[Any] = (),
    names: Sequence[str] | None = None,
    line_map: Sequence[Span | None] | None = None,
    shared_names: Mapping[str, SharedName] | None = None,
    text_name: str = "<ptx>",
    **how: Unpack[RunOptions],
) -> Report:
    """Runs a kernel. Arrays among the arguments are modified in place.

    kernel: its PTX name; None for the only one. cooperative: all CTAs begin at once. arguments: one a parameter, in
    order (``arguments.bind``). For messages, names: of the arguments; line_map: by PTX line the source's span;
    shared_names: by PTX symbol the source's name of a shared variable; text_name: of the PTX text. how: ``RunOptions``.

    Raises CompileError for PTX that cannot be read or executed and for a recorded schedule that does not fit,
    LaunchError for a launch that the kernel or its target does not allow and for variables that memory has no room for.
    What goes wrong in the kernel itself, a limit and Ctrl-C are in the report.
    """
    try:
        code = compiled(ptx, kernel, text_name, traced=how.get("watch") is not None)
    except CompileError as problem:
        raise CompileError([at_source(found, line_map) for found in problem.diagnostics]) from None
    program = code.program
    module, function = program.module, program.kernel
    shape = check_shape(module, function, program.symbols, grid, block, cluster, shared_bytes)
    schedule, limits = _decided(how)
    schedule.check(ctas=prod(shape.grid), warps=-(-prod(shape.block) // _WARP_SIZE))
    if program.symbols.variable_bytes > limits.memory:
        what = f"the variables that kernel '{function.name}' names have {program.symbols.variable_bytes:,} bytes"
        raise launch_error(MEMORY_LIMIT, f"{what}; the limit is {limits.memory:,}", help="raise the limit")
    try:
        memory = Memory(program.symbols, shared_names)
        bind(function, memory, arguments, names)
    except MemoryError as problem:
        raise launch_error(MEMORY_LIMIT, f"the simulation cannot begin: {problem}") from None
    places = Places(module, function.name, line_map)
    machine = Machine(code, memory, shape, places, schedule, limits, how, together=cooperative)
    report = run(machine)
    report.line_map = line_map or ()
    return report


def _decided(how: RunOptions) -> tuple[Schedule, Limits]:
    """The schedule and the limits. Raises TypeError for what is neither, CompileError for texts of no schedule."""
    schedule, limits = how.get("schedule"), how.get("limits")
    for what, given, kinds, help in (
        ("schedule", schedule, str | Schedule, "'round-robin', 'random:SEED', 'slow:NAME' or one that was recorded"),
        ("limits", limits, Limits, "ptxdsl.Limits(…)"),
    ):
        if given is not None and not isinstance(given, kinds):
            raise TypeError(f"{what} cannot be {shown_with_type(given)}: give {help}")
    for name in () if limits is None else field_names(Limits):
        _check_limit(name, getattr(limits, name))
    for name in ("trace", "record"):
        if not isinstance(how.get(name, False), bool):
            raise TypeError(f"{name} is True or False, not {shown_with_type(how.get(name))}")
    chosen = parse_schedule(schedule) if isinstance(schedule, str) else schedule or Schedule()
    return chosen, limits or Limits()


def _check_limit(name: str, value: Any) -> None:
    try:
        fits = whole(value) >= 0
    except TypeError:
        fits = False
    if not fits:
        raise TypeError(f"the limit {name} is a whole number from 0, not {shown(value)}")


def run(machine: Machine) -> Report:
    """Runs a machine to its end, whatever that is."""
    diagnostics: list[Diagnostic] = []
    try:
        status = machine.run()
        if status == "deadlock":
            assert machine.stall.diagnostic is not None
            diagnostics.append(machine.stall.diagnostic)
            if machine.stall.diagnostic.code == DIVERGENT:
                status = "fault"
    except SimulationFault as fault:
        status = "fault"
        diagnostics.append(fault.diagnostic)
    except LimitReached as limit:
        status = "limit"
        diagnostics.append(_reached(machine, limit.diagnostic))
    except MemoryError as problem:
        status = "limit"
        words = str(problem) or "the computer has no more memory"
        diagnostics.append(_reached(machine, Diagnostic(MEMORY_LIMIT, f"the simulation stopped: {words}")))
    except KeyboardInterrupt:
        status = "interrupted"
        counts = machine.statistics
        message = (
            f"interrupted after {counts.thread_instructions:,} thread-instructions; "
            f"{counts.ctas} of {machine.cta_count} CTAs were finished"
        )
        diagnostics.append(_reached(machine, Diagnostic(INTERRUPTED, message)))
    statistics = machine.statistics
    latest = [warp.clock for c in machine.resident.values() for cta in c.ctas for warp in cta.warps]
    statistics.cycles = max([statistics.cycles, *latest])
    return Report(
        machine.program.kernel.name,
        status,
        (*diagnostics, *machine.warnings),
        statistics,
        machine.schedule,
        machine.recorder.recording() if machine.recorder is not None else None,
        machine.trace.events if machine.trace is not None else [],
        machine.trace.cut if machine.trace is not None else 0,
        "".join(machine.output),
    )


def _reached(machine: Machine, diagnostic: Diagnostic) -> Diagnostic:
    """With notes of where the warps are."""
    notes: tuple[Note, ...] = tuple(whereabouts(machine))
    span = notes[0][0] if notes else None
    return Diagnostic(diagnostic.code, diagnostic.message, span, notes, diagnostic.help)


def compiled(ptx: str | bytes | Module, kernel: str | None, text_name: str = "<ptx>", traced: bool = False) -> WarpCode:
    """The host code of a kernel. Raises CompileError. The last few of a process are kept. traced: it writes the access
    log."""
    if isinstance(ptx, Module):
        return translate(build(ptx, kernel), trace=traced)
    return _compiled(ptx, kernel, text_name, traced)


@lru_cache(_CACHED)
def _compiled(ptx: str | bytes, kernel: str | None, text_name: str, traced: bool) -> WarpCode:
    return translate(build(read(ptx, text_name), kernel), trace=traced)
