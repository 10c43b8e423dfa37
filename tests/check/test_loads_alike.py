"""Loads from the same place give the same value, however two roles count: no fault is made of their giving two."""

from __future__ import annotations

from proofs import verdict

KERNEL = """\
@kernel(threads=64)
def kernel(src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], n: Int32, stop: Pointer[Int32, MutAnyOrigin]):
    var bars = unsafe_stack_allocation[4, SharedMemBarrier, address_space=.SHARED]()
    var tile = unsafe_stack_allocation[64, Float32, address_space=.SHARED, alignment=128]()
    if thread_idx.x < 4:
        bars[unsafe_offset=thread_idx.x].init(32)
    barrier()
    var lane = Int32(thread_idx.x) % 32
    if thread_idx.x < 32:
        var p = RolePipeline[2, True](bars, bars.unsafe_offset(2))
        for i in range(n):
{step}{other}    else:
        var c = RolePipeline[2, False](bars, bars.unsafe_offset(2))
        for i in range(2 * n):
            if stop[unsafe_offset=i + {away}] != 0:
                break
            c.wait()
            res[unsafe_offset=i * 32 + lane] = tile[unsafe_offset=Int32(c.state.index()) * 32 + lane]
            c.release()
"""  # noqa: E501
STEP = """\
            if stop[unsafe_offset={at}] != 0:
                break
            p.acquire()
            tile[unsafe_offset=Int32(p.state.index()) * 32 + lane] = src[unsafe_offset=({at}) * 32 + lane]
            p.commit()
"""


def kernel(away: int) -> str:
    return KERNEL.format(step=STEP.format(at="2 * i"), other=STEP.format(at="2 * i + 1"), away=away)


def test_the_same_place_is_no_fault() -> None:
    """One role counts pairs of steps, the other one single steps: both leave where the flag says it."""
    found = verdict(kernel(away=0))
    assert found.verdict != "fault"


def test_another_place_is_a_fault() -> None:
    found = verdict(kernel(away=1))
    assert (found.verdict, found.kinds) == ("fault", ("missing arrive",))
    assert found.shows_with[0]
