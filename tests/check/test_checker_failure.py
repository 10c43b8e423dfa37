"""A failure of the checker itself: the kernel compiles all the same, and nothing is proved."""

import pytest

from ptxdsl import driver, loads
from ptxdsl.check import proof, report
from ptxdsl.driver import Job, show
from ptxdsl.source import Source

KERNEL = """
@kernel(threads=64)
def kernel(x: Pointer[Int32, MutAnyOrigin]):
    barrier()
    x[0] = 1
"""


@pytest.fixture
def broken(monkeypatch):
    def fail(*arguments):
        raise AssertionError

    monkeypatch.setattr(proof, "prove", fail)
    monkeypatch.setattr(driver, "_findings", {})  # nothing was found before


def test_it_compiles(broken):
    assert ".visible .entry kernel" in loads(KERNEL).kernel.compile().ptx


def test_nothing_is_proved(broken):
    job = Job(Source("k.pdsl", KERNEL))
    assert "bar.sync" in show(job, "ptx")
    assert job.sink.items == []


def test_whoever_debugs_sees_it(broken, monkeypatch):
    monkeypatch.setenv("PTXDSL_DEBUG", "1")
    with pytest.raises(Exception, match=r"internal error|AssertionError"):
        show(Job(Source("k.pdsl", KERNEL)), "ptx")
    assert report.UNPROVED != report.PROVED
