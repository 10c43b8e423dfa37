"""Two things at once: LLVM, which leaves Python free, and in another thread what Python has to do meanwhile."""

from __future__ import annotations

import sys
from _thread import LockType, allocate_lock, start_new_thread  # threading, without the module around it
from collections.abc import Callable
from functools import partial

from ptxdsl.shared_context import SharedContext

# Seconds. Between two calls of LLVM its thread needs Python for a moment. By default it waits 5 ms for that, which is
# as long as such a call takes.
_SWITCH_AFTER = 0.0002


def _take_turns_promptly() -> Callable[[], object]:
    found = sys.getswitchinterval()
    sys.setswitchinterval(min(found, _SWITCH_AFTER))
    return partial(sys.setswitchinterval, found)


_prompt = SharedContext(_take_turns_promptly)


def concurrently(call: Callable[[], str], meanwhile: Callable[[], None]) -> str:
    """What ``call`` gives, while ``meanwhile`` runs in another thread.

    Both have ended when this returns or raises. What ``meanwhile`` raises goes before what ``call`` does; Ctrl-C is
    heeded by ``call``, and waits for the other.
    """
    problems: list[BaseException] = []
    running = allocate_lock()

    def run() -> None:
        try:
            meanwhile()
        except BaseException as problem:
            problems.append(problem)
        finally:
            running.release()

    running.acquire()
    with _prompt:
        try:
            start_new_thread(run, ())
        except RuntimeError:  # the system gives no more threads
            meanwhile()
            return call()
        try:
            return call()
        finally:
            _wait(running)
            if problems:
                raise problems[0]


def _wait(running: LockType) -> None:
    try:
        running.acquire()
    except KeyboardInterrupt:
        running.acquire()
        raise
