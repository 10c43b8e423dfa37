"""Places of an access that lie by constants apart are looked at as one, and are told apart where that matters."""

from __future__ import annotations

from proofs import verdict

from ptxdsl import driver
from ptxdsl.check.addresses import Part
from ptxdsl.check.search import Search
from ptxdsl.check.slots import Access
from ptxdsl.options import Options
from ptxdsl.protocol.from_tir import kernel_model
from ptxdsl.source import Source

TEXT = """
@kernel(threads=64)
def kernel(res: Pointer[Float32, MutAnyOrigin], n: Int32):
    var tile = unsafe_stack_allocation[1024, Float32, address_space=.SHARED]()
    var t = Int32(thread_idx.x)
    comptime for i in range(8):
        tile[unsafe_offset=Int32(i) * 64 + t] = Float32(i)
    barrier()
    res[unsafe_offset=t] = tile[unsafe_offset=511 - t]
"""


def written(text: str) -> list[Part]:
    job = driver.Job(Source("kernel.pdsl", text), None, options=Options("sm_90a", check="off"))
    search = Search(kernel_model(driver.run(job, "tir").kernels[0]), (64, 1, 1), 100, 1000, coarse=True)
    search.prepare()
    steps = [step for agent in search.context.agents for step in agent.steps]
    return [part for step in steps if isinstance(step, Access) and step.writes for part in step.parts]


def test_stores_of_one_line_are_one_part() -> None:
    (part,) = written(TEXT)
    assert part.offsets == tuple(range(0, 8 * 256, 256))
    assert verdict(TEXT).verdict == "proved"


def test_stores_whose_distance_is_not_known_are_not() -> None:
    assert len(written(TEXT.replace("(i) * 64", "(i) * n"))) == 8


def test_what_two_of_them_write_is_found() -> None:
    """Thread 32 writes in one turn what thread 0 writes in the next."""
    found = verdict(TEXT.replace("(i) * 64", "(i) * 32"))
    assert (found.verdict, [said.code for said in found.diagnostics]) == ("fault", ["E1215"])


def test_what_reaches_out_of_the_array_is_found_of_each() -> None:
    found = verdict(TEXT.replace("range(8)", "range(17)"))
    assert (found.verdict, [said.code for said in found.diagnostics]) == ("fault", ["E1211"])
