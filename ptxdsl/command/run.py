"""The command ``ptxdsl run``: from its arguments to what it prints and its exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from shlex import quote
from typing import Any

import numpy as np

from ptxdsl.command.command_line import Arguments
from ptxdsl.cuda.shape import check_thread_count, dynamic_size
from ptxdsl.diagnostics import CompileError, Diagnostic, LaunchError, error
from ptxdsl.files.output_files import check_outputs, make_folder, write_by, write_file
from ptxdsl.options import Options
from ptxdsl.record import dataclass, field
from ptxdsl.run import specification
from ptxdsl.run.binding import Bound, bind
from ptxdsl.run.expectation import Expectation, Tolerance
from ptxdsl.run.formats import Array, to_values
from ptxdsl.run.places import Shape, in_simulator, on_gpu
from ptxdsl.run.subject import Subject, compiled_subject, ptx_subject
from ptxdsl.run.witness import Launch, Witness, read_witness
from ptxdsl.sim.launch import Report
from ptxdsl.sim.limits import Limits
from ptxdsl.sim.machine.schedule import Schedule, parse_schedule
from ptxdsl.source import Source
from ptxdsl.targets import target_of_ptx

_SHOWN = 6  # elements of an array's first row
DEFAULT_ARCH = "sm_90a"


@dataclass
class Ran:
    """lines: for standard output. diagnostics: for standard error. good: whether the kernel ended, all expectations
    hold and no race was found. told: what ``--json`` says of the run beside that."""

    lines: list[str] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    good: bool = True
    told: dict[str, Any] = field(default_factory=dict)

    def write(self, write: Callable[..., None], *arguments: Any) -> None:
        """Writes a file; why it cannot be is told beside the results, which are not lost for that."""
        try:
            write(*arguments)
        except CompileError as problem:
            self.diagnostics.extend(problem.diagnostics)


def run(arguments: Arguments, source: Source, constants: dict[str, str]) -> Ran:
    """Raises CompileError for what is wrong with the arguments, the text or the launch."""
    try:
        return _run(arguments, source, constants)
    except LaunchError as problem:
        raise CompileError(problem.diagnostics) from None


def _run(arguments: Arguments, source: Source, constants: dict[str, str]) -> Ran:
    schedule, witness = _schedule(arguments.schedule)
    if witness is not None:
        _fill_in(arguments, witness.launch)
        constants = {**witness.launch.constants, **constants}
        arguments.races = arguments.races or witness.races
        arguments.lanes = arguments.lanes or witness.lanes
    arguments.races = arguments.races or arguments.lanes
    specs = specification.arguments(arguments.args or ())
    expectations = [Expectation(text) for text in arguments.expect or ()]
    saves = _saves(arguments.save or ())
    outputs = [(f"--save {name}", path) for name, path in saves]
    outputs += [(f"--{name}", path) for name in ("trace", "timeline") if (path := getattr(arguments, name)) is not None]
    check_outputs(outputs, (arguments.file, arguments.schedule or "-"))
    gpu = _on_gpu(arguments)
    _exclusive(arguments)
    if gpu and (arguments.trace or arguments.timeline or arguments.races or arguments.explore or schedule):
        what = "--schedule, --trace, --timeline, --races, --lanes and --explore are the simulator's"
        raise error("E1019", what, None, help="add --target sim")
    arch = _device_arch() if gpu and arguments.arch is None else arguments.arch
    if source.name.endswith(".ptx"):
        subject = ptx_subject(source, arguments.kernel, specs, _first(arch, target_of_ptx(source.text)))
    else:
        options = Options(
            _first(arch),
            wait=arguments.wait,
            contract=not arguments.no_contract,
            ring_unroll=not arguments.no_ring_unroll,
            include=tuple(arguments.include or ()),
        )
        subject = compiled_subject(source, arguments.kernel, constants, options)
    bound = bind(subject, specs)
    for name, _ in saves:
        if name not in bound.arrays:
            help = f"the arrays are {', '.join(bound.arrays)}" if bound.arrays else "no argument is an array"
            raise error("E1018", f"--save {name}: no argument of that name is an array", None, help=help)
    shape = _shape(arguments, subject)
    before = {**bound.numbers, **{name: to_values(a.copy(), t) for name, (a, t) in bound.arrays.items()}}
    ran = Ran(diagnostics=list(subject.warnings))
    if arguments.explore is not None:
        _explore(arguments, subject, lambda: bind(subject, specs), shape, constants, expectations, before, ran)
        return ran
    if gpu:
        seconds = on_gpu(subject, bound, shape)
        ran.lines.append(f"{_headline(subject, shape)} on the GPU: {seconds * 1e3:.3g} ms with the copies back")
    else:
        _simulate(arguments, subject, bound, shape, schedule, ran)
        if witness is not None and witness.differs and arguments.steps is None:
            _compare(subject, bound, bind(subject, specs), shape, ran)
    _results(bound, before, expectations, arguments, ran)
    for name, path in saves:
        ran.write(write_by, path, partial(np.save, arr=bound.arrays[name][0], allow_pickle=False))
    return ran


def _first(*archs: str | None) -> str:
    return next((arch for arch in archs if arch is not None), DEFAULT_ARCH)


def _fill_in(arguments: Arguments, launch: Launch) -> None:
    """Gives a command what it does not say itself, of a witness's launch."""
    arguments.kernel = arguments.kernel or launch.kernel
    arguments.arch = arguments.arch or launch.arch
    arguments.grid = arguments.grid or launch.grid
    arguments.block = arguments.block or launch.block
    arguments.cluster = arguments.cluster or launch.cluster
    arguments.smem = launch.smem if arguments.smem is None else arguments.smem
    said = {entry.partition("=")[0] for entry in arguments.args or ()}
    own = [f"{name}={text}" for name, text in launch.args.items() if name not in said]
    arguments.args = [*(arguments.args or ()), *own]


def _simulate(
    arguments: Arguments, subject: Subject, bound: Bound, shape: Shape, schedule: Schedule | None, ran: Ran
) -> None:
    from ptxdsl.run.progress import progress_bar

    limits = Limits()
    if arguments.steps is not None:
        limits = Limits(steps=arguments.steps, idle_steps=max(arguments.steps, limits.idle_steps))
    traced = bool(arguments.trace or arguments.timeline)
    watch = None
    if arguments.races:
        from ptxdsl.races.trace import TraceCheck

        watch = TraceCheck(arguments.lanes)
    with progress_bar(sys.stderr) as progress:
        report = in_simulator(
            subject, bound, shape, schedule=schedule, limits=limits, trace=traced, progress=progress, watch=watch
        )
    ran.diagnostics.extend(report.diagnostics)
    ran.good = report.status == "finished"
    ran.told["status"] = report.status
    if report.output:
        ran.lines.append(report.output.removesuffix("\n"))
    counts = report.statistics
    target = subject.compiled.options.arch
    ran.lines.append(
        f"{_headline(subject, shape)} in the simulator ({target}): {report.status}, "
        f"{counts.thread_instructions:,} thread-instructions, {counts.cycles:,} cycles of the model"
    )
    if watch is not None:
        races = watch.found().allowed()
        ran.diagnostics.extend((*races.diagnostics, *races.remarks))
        ran.good = ran.good and not races.races
        ran.lines.append(races.summary())
        ran.told["races"] = races.as_json()
    _write_traces(arguments, report, subject, ran)
    if report.events_cut:
        ran.lines.append(
            f"the timeline has the first {len(report.events):,} events; {report.events_cut:,} more are left out"
        )


def _explore(
    arguments: Arguments,
    subject: Subject,
    fresh: Callable[[], Bound],
    shape: Shape,
    constants: dict[str, str],
    expectations: Sequence[Expectation],
    before: dict[str, Any],
    ran: Ran,
) -> None:
    from ptxdsl.command.counterexamples import explored, outcome_files

    folder = arguments.explore or ""
    make_folder(folder)
    exploration, replay = explored(subject, fresh, shape, Limits(turns=5000))
    target = subject.compiled.options.arch
    ran.lines += [f"{_headline(subject, shape)} in the simulator ({target}):", *exploration.text().splitlines()]
    ran.good = exploration.agrees
    ran.told["exploration"] = exploration.as_json()
    args = dict(entry.split("=", 1) for entry in arguments.args or ())
    launch = Launch(subject.name, constants, target, shape.grid, shape.block, shape.cluster, shape.smem or None, args)
    for outcome, (path, text) in zip(exploration.outcomes, outcome_files(folder, launch, exploration), strict=True):
        ran.write(write_file, path, text)
        ran.lines.append(f"--schedule {quote(path)}")
        if outcome.status == "finished":
            _results(replay(outcome), before, expectations, arguments, ran)
        else:
            ran.diagnostics.extend(outcome.diagnostics)


def _compare(subject: Subject, bound: Bound, fresh: Bound, shape: Shape, ran: Ran) -> None:
    """The results beside those of the default schedule."""
    in_simulator(subject, fresh, shape)
    for name, (array, dtype) in bound.arrays.items():
        mine, others = to_values(array, dtype), to_values(fresh.arrays[name][0], dtype)
        count = int(np.count_nonzero((mine != others) & ~((mine != mine) & (others != others))))
        if count:
            ran.lines.append(f"FAILED  {name}: {count} of {mine.size} elements are not those of --schedule round-robin")
            ran.good = False


def _write_traces(arguments: Arguments, report: Report, subject: Subject, ran: Ran) -> None:
    if not (arguments.trace or arguments.timeline):
        return
    from ptxdsl.run.chrome_trace import chrome_trace
    from ptxdsl.run.lanes import lanes
    from ptxdsl.run.timeline_page import timeline_page

    shown, line_map = lanes(report.events), subject.compiled.line_map
    if arguments.trace:
        ran.write(write_file, arguments.trace, chrome_trace(shown, line_map, report.events_cut))
    if arguments.timeline:
        title = f"kernel {subject.name}"
        ran.write(write_file, arguments.timeline, timeline_page(shown, line_map, title, report.events_cut))


def _results(
    bound: Bound, before: dict[str, Any], expectations: Sequence[Expectation], arguments: Arguments, ran: Ran
) -> None:
    after = {**before, **{name: to_values(array, dtype) for name, (array, dtype) in bound.arrays.items()}}
    for name, (_, dtype) in bound.arrays.items():
        if not _same(before[name], after[name]):
            ran.lines.append(f"{name}: {dtype}{list(after[name].shape)} = {_text(after[name])}")
    tolerance = Tolerance(arguments.rtol, arguments.atol)
    for expectation in expectations:
        outcome = expectation.judge(before, after, tolerance)
        ran.lines.append(f"{'ok' if outcome.holds else 'FAILED'}  {outcome.text}")
        ran.good = ran.good and outcome.holds


# ------------------------------------------------------------------------------------------------------- arguments


def _exclusive(arguments: Arguments) -> None:
    names = ("save", "trace", "timeline", "lanes", "races", "schedule", "steps")
    others = [f"--{name}" for name in names if getattr(arguments, name) not in (None, False)]
    if arguments.explore is not None and others:
        help = "leave it out, or look at one interleaving with the schedule that --explore has written"
        raise error("E1030", f"--explore runs many interleavings, {others[0]} concerns one", None, help=help)


def _on_gpu(arguments: Arguments) -> bool:
    if arguments.target != "auto":
        return arguments.target == "gpu"
    if arguments.schedule or arguments.trace or arguments.timeline or arguments.races:
        return False
    if arguments.explore is not None or arguments.steps is not None:
        return False
    from ptxdsl.cuda.driver import current_driver

    try:
        current_driver()
    except LaunchError:
        return False
    return True


def _device_arch() -> str:
    from ptxdsl.api.program import device_arch, device_in_use
    from ptxdsl.cuda.driver import current_driver

    return device_arch(device_in_use(current_driver()))


def _schedule(text: str | None) -> tuple[Schedule | None, Witness | None]:
    if text is None:
        return None, None
    if os.path.isfile(text):
        from ptxdsl.files.text_files import read_bytes

        path, text = text, read_bytes(text).decode("utf-8", "replace")
        if not text.lstrip().startswith("{"):
            help = "write round-robin, random:SEED, slow:NAME or the file of a recorded schedule"
            raise error("E1103", f"the file '{path}' is not a recorded schedule", None, help=help)
    schedule = parse_schedule(text)
    if schedule.recorded is None:
        return schedule, None
    return schedule, read_witness(text, schedule.recorded)


def _shape(arguments: Arguments, subject: Subject) -> Shape:
    block = arguments.block or subject.signature.block
    if block is None:
        name = subject.name
        help = "add --block N, or declare @kernel(threads=N)"
        raise error("E1020", f"kernel '{name}' does not say the size of its block", None, help=help)
    check_thread_count(subject.signature, block)
    if arguments.smem is None and subject.signature.dynamic_shared and subject.signature.dynamic_bytes is None:
        help = "give its size in bytes with --smem"
        raise error("E1020", f"kernel '{subject.name}' uses dynamic shared memory", None, help=help)
    smem = dynamic_size(subject.signature, arguments.smem, "--smem")
    return Shape(arguments.grid or (1, 1, 1), block, arguments.cluster or subject.signature.cluster, smem)


def _saves(entries: Sequence[str]) -> list[tuple[str, str]]:
    found = []
    for entry in entries:
        name, equals, path = entry.partition("=")
        if not (name and equals and path.endswith(".npy")):
            raise error("E1013", f"--save {entry}: expected NAME=FILE.npy", None, help="for example --save res=res.npy")
        found.append((name, path))
    return found


# ----------------------------------------------------------------------------------------------------------- output


def _headline(subject: Subject, shape: Shape) -> str:
    cluster = f", cluster {_dims(shape.cluster)}" if shape.cluster else ""
    return f"kernel '{subject.name}', grid {_dims(shape.grid)}, block {_dims(shape.block)}{cluster}"


def _dims(dims: tuple[int, int, int]) -> str:
    x, y, z = dims
    return str(x) if (y, z) == (1, 1) else f"{x}x{y}" if z == 1 else f"{x}x{y}x{z}"


def _same(a: Array, b: Array) -> bool:
    return a.tobytes() == b.tobytes()


def _text(array: Array) -> str:
    flat = array.reshape(-1)
    shown = " ".join(f"{value:.6g}" if array.dtype.kind == "f" else str(value) for value in flat[:_SHOWN])
    return f"{shown}{' …' if flat.size > _SHOWN else ''}"
