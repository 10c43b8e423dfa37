"""LLVM and what is done beside it: both end, in every way that they can."""

from __future__ import annotations

import os
import signal
import sys
import time
from _thread import start_new_thread
from collections.abc import Iterator
from typing import Any

import pytest

from ptxdsl.artifact import Compiled
from ptxdsl.backend import concurrently as module
from ptxdsl.backend.concurrently import concurrently
from ptxdsl.diagnostics import CompileError
from ptxdsl.driver import Job, compile_source, run
from ptxdsl.options import Options
from ptxdsl.source import Source


@pytest.fixture(autouse=True)
def turns_are_as_before() -> Iterator[None]:
    before = sys.getswitchinterval()
    yield
    assert sys.getswitchinterval() == before


class Events(list[str]):
    def slowly(self) -> None:
        time.sleep(0.02)
        self.append("meanwhile")

    def fails(self) -> None:
        self.slowly()
        raise LookupError("meanwhile")

    def call(self) -> str:
        self.append("call")
        return "text"

    def wrong(self) -> str:
        raise RuntimeError("call")


def test_both_are_done() -> None:
    events = Events()
    assert concurrently(events.call, events.slowly) == "text"
    assert events == ["call", "meanwhile"]


def test_one_waits_for_the_other() -> None:
    """Each needs what only the other does: they do run at once."""
    mine, other = module.allocate_lock(), module.allocate_lock()
    mine.acquire()
    other.acquire()

    def call() -> str:
        other.release()
        return "text" if mine.acquire(timeout=10) else "alone"

    def meanwhile() -> None:
        assert other.acquire(timeout=10)
        mine.release()

    assert concurrently(call, meanwhile) == "text"


def test_what_the_call_raises() -> None:
    events = Events()
    with pytest.raises(RuntimeError, match="call"):
        concurrently(events.wrong, events.slowly)
    assert events == ["meanwhile"]


@pytest.mark.parametrize("call", ["call", "wrong"])
def test_what_is_raised_meanwhile_goes_first(call: str) -> None:
    events = Events()
    with pytest.raises(LookupError, match="meanwhile"):
        concurrently(getattr(events, call), events.fails)


def test_ctrl_c() -> None:
    events = Events()

    def interrupted() -> str:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)
        return "never"

    with pytest.raises(KeyboardInterrupt):
        concurrently(interrupted, events.slowly)
    assert events == ["meanwhile"]


def test_without_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*what: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(module, "start_new_thread", none_left)
    events = Events()
    assert concurrently(events.call, events.slowly) == "text"
    assert events == ["meanwhile", "call"]


FAULTY = """\
@kernel(threads=64)
def kernel(res: Pointer[Float32, MutAnyOrigin], n: Int32):
    var bars = unsafe_stack_allocation[2, SharedMemBarrier, address_space=.SHARED]()
    if thread_idx.x == 0:
        bars[unsafe_offset=0].init(32)
        bars[unsafe_offset=1].init(32)
    barrier()
    if thread_idx.x < 32:
        var p = RolePipeline[1, True](bars, bars.unsafe_offset(1))
        for i in range(n):
            p.acquire()
            p.step()
"""


@pytest.mark.parametrize("stop", ["rings", "ptx"])
def test_an_error_ends_the_run_at_every_stage(stop: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_source(Source("k.pdsl", FAULTY), options=Options(check="error"), stop=stop)
    assert [(found.code, found.severity) for found in caught.value.diagnostics] == [("E1201", "error")]


@pytest.mark.parametrize("stop", ["rings", "llvm", "ptx"])
def test_a_warning_is_found_once_at_every_stage(stop: str) -> None:
    job = Job(Source("k.pdsl", FAULTY))
    run(job, stop)
    assert [(found.code, found.severity) for found in job.sink.items] == [("E1201", "warning")]


def test_a_thread_is_for_what_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is proved of a text is remembered, and looked at without one; the findings are the same."""
    started = []

    def start(*what: Any) -> None:
        started.append(what)
        start_new_thread(*what)

    monkeypatch.setattr(module, "start_new_thread", start)
    for times in (1, 1, 2):
        text = f"# a text of its own: {times}\n{FAULTY}"
        compiled = compile_source(Source("k.pdsl", text))
        assert isinstance(compiled, Compiled) and [found.code for found in compiled.warnings] == ["E1201"]
        assert len(started) == times


def test_a_warning_beside_an_error_of_a_later_stage() -> None:
    """The PTX version is too low: that is found before LLVM is called, and what the checker finds stands before it."""
    with pytest.raises(CompileError) as caught:
        compile_source(Source("k.pdsl", FAULTY), options=Options(arch="sm_90a", ptx_version=(7, 0)))
    assert [found.severity for found in caught.value.diagnostics] == ["warning", "error"]
    assert [found.code[:3] for found in caught.value.diagnostics] == ["E12", "E07"]
