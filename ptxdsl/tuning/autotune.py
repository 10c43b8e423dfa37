"""``autotune``: compiles all configurations of a kernel, runs each, and finds the fastest."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from statistics import median
from typing import Any

from ptxdsl.api.kernel import Kernel
from ptxdsl.api.program import device_in_use
from ptxdsl.compiled import Compiled
from ptxdsl.cuda.driver import current_driver
from ptxdsl.cuda.errors import DeviceError
from ptxdsl.cuda.shape import seconds
from ptxdsl.cuda.simulated import runs_in_simulator
from ptxdsl.diagnostics import CompileError, Diagnostic, LaunchError, launch_error
from ptxdsl.record import dataclass, replace
from ptxdsl.run.progress import Show, gauge, status_line
from ptxdsl.shown import shown
from ptxdsl.tuning.compiling import Outcome, compile_all
from ptxdsl.tuning.measure import InSimulator, OnDevice
from ptxdsl.tuning.results import ResultsFile, Trial
from ptxdsl.tuning.space import Candidate, Configuration, candidate, configurations
from ptxdsl.tuning.task import context, task

Arguments = Sequence[Any] | Callable[[Configuration], Sequence[Any]]


@dataclass(eq=False)
class Tuned:
    """The fastest configuration and all others. trials: in the order of the space. kernel: specialised for the best.

    shape: of the best launch (grid, block and so on). warnings: damaged lines of the results file.
    """

    best: Trial
    trials: tuple[Trial, ...]
    kernel: Kernel
    shape: Mapping[str, Any]
    warnings: tuple[Diagnostic, ...] = ()

    def launch(self, *arguments: Any, stream: Any = None) -> None:
        """Launches the kernel in its best configuration, where it was measured. Raises like a launch."""
        rest = {name: value for name, value in self.shape.items() if name not in ("grid", "block")}
        target = "sim" if self.best.unit == InSimulator.unit else None
        self.kernel[self.shape["grid"], self.shape["block"]](*arguments, stream=stream, target=target, **rest)

    def __str__(self) -> str:
        """A table, the fastest first; then what did not run, and why."""
        rows = sorted(self.trials, key=lambda trial: float("inf") if trial.time is None else trial.time)
        heads = [trial.code or _time(trial) for trial in rows]
        width = max(map(len, heads))
        said = [f": {trial.message}" if trial.message else "" for trial in rows]
        table = zip(heads, rows, said, strict=True)
        lines = [f"{head:>{width}}  {_shown(trial.configuration)}{words}" for head, trial, words in table]
        return "\n".join([*lines, *(d.render() for d in self.warnings)])


def autotune(
    kernel: Kernel,
    space: Mapping[str, Iterable[Any]] | Iterable[Configuration],
    arguments: Arguments,
    *,
    grid: Any = 1,
    block: Any = None,
    smem: Any = None,
    cluster: Any = None,
    cooperative: Any = False,
    pdl: Any = False,
    keep: Callable[[Configuration], Any] | None = None,
    check: Callable[..., Any] | None = None,
    target: str | None = None,
    arch: str = "sm_90a",
    executor: Executor | None = None,
    results: str | os.PathLike[str] | None = None,
    problem: Any = None,
    repetitions: int = 20,
    flush_l2: bool = True,
    timeout: float = 60,
    stream: Any = None,
) -> Tuned:
    """Finds the configuration of a kernel that takes the least time.

    space: names and their values, of which all combinations are tried, or a list of configurations; a name is one of
    the kernel's comptime parameters, or ``grid``, ``block``, ``smem``, ``cluster``, ``cooperative``, ``pdl``. These
    keywords are for all configurations, and may be functions of one. keep: a function that says whether a configuration
    is tried.

    arguments: of the launches, or a function that makes them for a configuration. check: called with them after the
    first launch; False or an AssertionError means that the result is wrong. target: ``gpu``, ``sim`` (time is the
    simulator's cycles, for the target ``arch``), or None as for a launch.

    executor: compiles (``concurrent.futures``); None uses processes of this machine. results: a file that gets a line
    for each configuration; what it contains is not measured again. problem: what else the time depends on, if
    arguments is a function. repetitions: launches per configuration, whose median counts. flush_l2: flush the L2 cache
    before each. timeout: seconds for a launch.

    A configuration that fails has the reason in its row. Raises LaunchError: E0940 (the space), E0942 (none runs),
    E0944 (the results file); DeviceError if the device is lost to a fault or hang: the same call with ``results``
    resumes.
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"a kernel is tuned, not {type(kernel).__name__}")
    if not callable(arguments) and not isinstance(arguments, Sequence):
        raise TypeError(f"arguments are a sequence, or a function that makes one; not {type(arguments).__name__}")
    if check is not None and not callable(check):
        raise TypeError(f"check is a function of the arguments, not {type(check).__name__}")
    if executor is not None and not hasattr(executor, "submit"):
        raise TypeError(f"executor is one of concurrent.futures, not {type(executor).__name__}")
    limit, count = seconds(timeout), _count(repetitions)
    launch = {"grid": grid, "block": block, "smem": smem, "cluster": cluster, "cooperative": cooperative, "pdl": pdl}
    candidates = [candidate(kernel, chosen, launch) for chosen in configurations(space, keep)]
    make = arguments if callable(arguments) else lambda _: arguments
    place: OnDevice | InSimulator
    has_driver = kernel._program.driver is not None
    if runs_in_simulator(target, () if target else make(candidates[0].configuration), has_driver):
        place = InSimulator(arch)
    else:
        driver = kernel._program.driver or current_driver()
        place = OnDevice(driver, device_in_use(driver), stream, count, flush_l2, limit)
    run = _Run(kernel, candidates, make, place, check, ResultsFile(None if results is None else os.fsdecode(results)))
    with status_line(sys.stderr) as show:
        return run.tuned(context(kernel, place.name, place.arch, arguments, problem), executor, show)


class _Run:
    def __init__(
        self, kernel: Kernel, candidates: Sequence[Candidate], make: Callable[[Configuration], Sequence[Any]],
        place: OnDevice | InSimulator, check: Callable[..., Any] | None, file: ResultsFile,
    ) -> None:  # fmt: skip
        self.kernel, self.candidates, self.make, self.place, self.check = kernel, candidates, make, place, check
        self.file = file
        self.trials: dict[str, Trial] = {}

    def tuned(self, of: str, executor: Executor | None, show: Show | None) -> Tuned:
        tasks = [task(of, each, self.place.settings) for each in self.candidates]
        left: dict[str, Candidate] = {}
        for name, each in zip(tasks, self.candidates, strict=True):
            known = self.file.find(name, each.configuration)
            if known is not None:
                self.trials[name] = known
            else:
                left.setdefault(name, each)
        try:
            self._compile(left, executor, show)
            # all is compiled before anything is measured: nothing else runs meanwhile
            self.place.settle()
            for name, each in left.items():
                if name not in self.trials:
                    self._finish(name, self._measured(name, each))
                _tell(show, "measured", len(self.trials), len(set(tasks)), self._best())
        finally:
            self.place.close()
        found = [
            replace(self.trials[n], configuration=c.configuration) for n, c in zip(tasks, self.candidates, strict=True)
        ]
        if self._best() is None:
            raise _none_runs(self.kernel, found)
        best = min((t for t in found if t.time is not None), key=lambda trial: trial.time or 0.0)
        chosen = next(c for c, trial in zip(self.candidates, found, strict=True) if trial is best)
        signature = next(iter(chosen.kernel.compile(self.place.arch).signatures.values()))
        shape = dict(chosen.launch) | {"block": chosen.shape(signature.block).block}
        return Tuned(best, tuple(found), chosen.kernel, shape, tuple(self.file.warnings))

    def _compile(self, left: Mapping[str, Candidate], executor: Executor | None, show: Show | None) -> None:
        wanted: dict[int, list[str]] = {}  # several launches may be of one kernel
        for name, each in left.items():
            if id(each.kernel) in wanted or not each.kernel.compiled_before(self.place.arch):
                wanted.setdefault(id(each.kernel), []).append(name)
        users = list(wanted.values())
        count = 0

        def done(number: int, outcome: Outcome) -> None:
            nonlocal count
            count += 1
            _tell(show, "compiled", count, len(users), self._best())
            if not isinstance(outcome, Compiled):
                for name in users[number]:
                    self._finish(name, self._failed(left[name], outcome))

        if users:
            compile_all([left[names[0]].kernel for names in users], self.place.arch, executor, done)

    def _measured(self, name: str, each: Candidate) -> Trial:
        try:
            times = self.place.times(each, self.make(each.configuration), self._check)
        except DeviceError as problem:
            trial = self._failed(each, problem.diagnostics)
            if isinstance(self.place, OnDevice):
                self._finish(name, trial)
                raise
            return trial
        except (LaunchError, CompileError) as problem:
            return self._failed(each, problem.diagnostics)
        except AssertionError as wrong:
            words = next(iter(str(wrong).splitlines()), "check does not hold")
            return self._failed(each, [Diagnostic("E0941", f"the result is wrong: {words}")])
        return Trial(each.configuration, median(times), min(times), max(times), len(times), self.place.unit)

    def _check(self, arguments: Sequence[Any]) -> None:
        if self.check is not None and self.check(*arguments) is False:
            raise AssertionError("check says False")

    def _failed(self, each: Candidate, diagnostics: Iterable[Diagnostic]) -> Trial:
        first = next(d for d in diagnostics if d.severity == "error")
        return Trial(each.configuration, unit=self.place.unit, code=first.code, message=first.message)

    def _finish(self, name: str, trial: Trial) -> None:
        self.trials[name] = trial
        self.file.append(name, {"kernel": self.kernel.name, "device": self.place.name}, trial)

    def _best(self) -> Trial | None:
        timed = [trial for trial in self.trials.values() if trial.time is not None]
        return min(timed, key=lambda trial: trial.time or 0.0, default=None)


def _tell(show: Show | None, what: str, done: int, of: int, best: Trial | None) -> None:
    if show is not None:
        so_far = f", best {_time(best)}" if best else ""
        show(lambda passed: f"{gauge(done, of)} {what} {done} of {of} configurations{so_far}, {passed:.0f} s")


def _none_runs(kernel: Kernel, trials: Sequence[Trial]) -> LaunchError:
    codes = ", ".join(sorted({trial.code for trial in trials if trial.code}))
    first = trials[0]
    message = f"none of {len(trials)} configurations of kernel '{kernel.name}' runs ({codes})"
    return launch_error("E0942", message, help=f"the first, {_shown(first.configuration)}: {first.message}")


def _time(trial: Trial) -> str:
    assert trial.time is not None
    return f"{trial.time:.0f} cycles" if trial.unit == "cycles" else f"{trial.time:.2f} µs"


def _shown(configuration: Configuration) -> str:
    return ", ".join(f"{name}={value}" for name, value in configuration.items()) or "the only configuration"


def _count(repetitions: Any) -> int:
    if isinstance(repetitions, bool) or not isinstance(repetitions, int) or repetitions < 1:
        raise launch_error("E0940", f"repetitions is a positive number of launches, got {shown(repetitions)}")
    return repetitions
