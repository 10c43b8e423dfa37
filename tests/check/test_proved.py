"""Proofs are kept by protocol: what is proved once is not proved again, and nothing else is taken for it."""

from __future__ import annotations

import pytest

from ptxdsl import driver
from ptxdsl.check import proof
from ptxdsl.driver import compile_source
from ptxdsl.options import Options
from ptxdsl.source import Source

KERNEL = """
@kernel(threads=64)
def ring(p: Pointer[Int32, MutAnyOrigin], n: Int32):
    var bars = unsafe_stack_allocation[4, SharedMemBarrier, address_space=.SHARED, alignment=8]().unsafe_origin_cast[MutAnyOrigin]()
    var buf = unsafe_stack_allocation[64, Int32, address_space=.SHARED]().unsafe_origin_cast[MutAnyOrigin]()
    if thread_idx.x == 0:
        comptime for i in range(4):
            bars[unsafe_offset=i].init(32)
    barrier()
    var lane = Int32(thread_idx.x) % 32
    if thread_idx.x < 32:
        var r = RolePipeline[2, True](bars, bars.unsafe_offset(2))
        for i in range(n):
            r.acquire()
            buf[unsafe_offset=Int32(r.state.index()) * 32 + lane] = p[unsafe_offset=lane]
            r.commit()
    else:
        var r = RolePipeline[2, False](bars, bars.unsafe_offset(2))
        for i in range(n):
            r.wait()
            p[unsafe_offset=i * 32 + lane] = buf[unsafe_offset=Int32(r.state.index()) * 32 + lane]
            r.release()
"""  # noqa: E501
FAULTY = KERNEL.replace("init(32)", "init(33)")


@pytest.fixture
def proofs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that were proved, one after the other."""
    made: list[str] = []
    prove = proof.prove

    def counted(kernel, threads, **limits):
        made.append(kernel.name)
        return prove(kernel, threads, **limits)

    monkeypatch.setattr(proof, "prove", counted)
    monkeypatch.setattr(driver, "_findings", {})  # nothing was found before
    return made


def warnings(text: str) -> list[tuple[str, int]]:
    compiled = compile_source(Source("ring.pdsl", text), options=Options(arch="sm_90a"))
    return [(found.code, found.span.line) for found in compiled.warnings]


def test_a_protocol_is_proved_once(proofs):
    assert warnings(KERNEL) == []
    # Other lines, other values: the same protocol.
    assert warnings("\n\n" + KERNEL.replace("= p[unsafe_offset=lane]", "= p[unsafe_offset=lane] * 3 + n")) == []
    assert proofs == ["ring"]


def test_what_was_found_of_a_text_is_told_again_without_a_proof(proofs):
    assert warnings(FAULTY) == warnings(FAULTY) != []
    assert proofs == ["ring"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("threads=64", "threads=96"),
        ("init(32)", "init(33)"),
        ("index()) * 32 + lane] = p", "index()) * 31 + lane] = p"),
        ("            r.release()\n", "            r.release()\n        barrier()\n"),
    ],
)
def test_another_protocol_is_not_taken_for_it(proofs, old, new):
    assert warnings(KERNEL) == []
    before = len(proofs)
    assert warnings(KERNEL.replace(old, new)) != []
    assert len(proofs) > before


def test_a_fault_is_found_at_its_place_each_time(proofs):
    (first,) = warnings(FAULTY)
    (second,) = warnings("\n\n\n" + FAULTY)
    assert second == (first[0], first[1] + 3)
    assert proofs == ["ring", "ring"]
