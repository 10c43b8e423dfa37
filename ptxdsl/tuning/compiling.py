"""Compiling many kernels at a time, through an executor: processes of this machine, or whatever the caller has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, as_completed

from ptxdsl.api.kernel import Kernel
from ptxdsl.compiled import Compiled
from ptxdsl.diagnostics import CompileError, Diagnostic, LaunchError

Outcome = Compiled | tuple[Diagnostic, ...]


def compile_one(kernel: Kernel, arch: str) -> Outcome:
    """What an executor runs: the artifact with its machine code, where there is a ptxas, or what is wrong."""
    try:
        compiled = kernel.compile(arch)
    except (CompileError, LaunchError) as problem:
        return problem.diagnostics
    try:
        compiled.cubin()
    except CompileError as problem:
        if problem.diagnostics[0].code != "E0803":
            return problem.diagnostics
    return compiled


def compile_all(
    kernels: Sequence[Kernel], arch: str, executor: Executor | None, done: Callable[[int, Outcome], None]
) -> None:
    """Calls ``done`` with the number of each kernel and its outcome, as they come, and makes the kernels know them.

    An executor that fails for a kernel makes E0943 of it.
    """
    if executor is None:
        from ptxdsl.tuning.local import LocalProcesses

        with LocalProcesses(len(kernels)) as local:
            _through(local, kernels, arch, done)
    else:
        _through(executor, kernels, arch, done)


def _through(executor: Executor, kernels: Sequence[Kernel], arch: str, done: Callable[[int, Outcome], None]) -> None:
    numbers: dict[Future[Outcome], int] = {}
    try:
        for number, kernel in enumerate(kernels):
            numbers[executor.submit(compile_one, kernel, arch)] = number
        for future in as_completed(numbers):
            number = numbers[future]
            try:
                outcome = future.result()
            except Exception as problem:  # of the executor, and of whatever it is made of
                words = " ".join(f"{type(problem).__name__}: {problem}".split()).rstrip(":")
                outcome = (Diagnostic("E0943", f"the executor did not compile the kernel: {words}"),)
            if isinstance(outcome, Compiled):
                kernels[number].adopt(outcome)
            done(number, outcome)
    finally:
        for future in numbers:
            future.cancel()
