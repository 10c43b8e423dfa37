"""Processes of this machine as an executor.

Each is a Python of its own that is sent pickled calls. Unlike those of ``multiprocessing`` it does not run the caller's
script again and is no fork of a process that uses CUDA, and one that crashes takes no other with it.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

from ptxdsl.processes import command_of

_PATIENCE = 1.0  # seconds for an idle process to end


class WorkerEndedError(Exception):
    """The process ended before it answered."""


class LocalProcesses(Executor):
    """A thread and a process for each processor, and not more than there are calls."""

    def __init__(self, calls: int) -> None:
        self._threads = ThreadPoolExecutor(max(1, min(calls, os.cpu_count() or 1)))
        self._own = threading.local()
        self._workers: list[_Worker] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self._threads.submit(self._call, fn, args, kwargs)

    def _call(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        worker = getattr(self._own, "worker", None)
        if worker is None:
            worker = self._own.worker = _Worker()
            self._workers.append(worker)
        try:
            return worker.call(fn, args, kwargs)
        except WorkerEndedError:
            self._own.worker = None
            raise

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        # those that still compile when the caller is interrupted are ended
        self._threads.shutdown(wait=False, cancel_futures=True)
        deadline = time.monotonic() + _PATIENCE
        for worker in self._workers:
            worker.hang_up()
        for worker in self._workers:
            worker.end(max(0.0, deadline - time.monotonic()))
        self._threads.shutdown(wait=wait)
        for worker in self._workers:  # of a thread that was just starting one
            worker.end(0)


class _Worker:
    def __init__(self) -> None:
        command = command_of("ptxdsl.tuning.local")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def call(self, *what: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        asked = pickle.dumps(what, protocol=5)
        try:
            self._process.stdin.write(asked)
            self._process.stdin.flush()
            fine, value = pickle.load(self._process.stdout)
        except (OSError, ValueError, EOFError, pickle.UnpicklingError):
            self.end(_PATIENCE)
            code = self._process.returncode
            end = f"was ended by signal {-code}" if code < 0 else f"ended with exit status {code}"
            raise WorkerEndedError(f"the process that compiled it {end}") from None
        if not fine:
            raise value
        return value

    def hang_up(self) -> None:
        """No more calls: an idle process ends."""
        try:
            if self._process.stdin is not None:
                self._process.stdin.close()
        except OSError:
            pass

    def end(self, patience: float) -> None:
        """Ends the process, if it has not ended so many seconds later."""
        self.hang_up()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def _serve() -> None:
    """Calls from standard input, answers to standard output, which nobody else may write to."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    calls = sys.stdin.buffer
    while True:
        try:
            fn, args, kwargs = pickle.load(calls)
        except EOFError:
            return
        try:
            answer: Any = (True, fn(*args, **kwargs))
        except Exception as problem:
            answer = (False, RuntimeError(f"{type(problem).__name__}: {problem}"))
        try:
            answers.write(pickle.dumps(answer, protocol=5))
            answers.flush()
        except BrokenPipeError:  # the caller has been ended; what is left in the buffer must not be tried again
            os._exit(1)


if __name__ == "__main__":
    _serve()
