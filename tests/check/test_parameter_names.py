"""What a parameter is called says nothing of its value, not even where sizes of the launch are called alike."""

from __future__ import annotations

import pytest
from proofs import verdict, verdict_of_ptx

from ptxdsl.check.least import NONE, least
from ptxdsl.protocol.expressions import SIZES, uniform

NAMES = ("ncols", "nctaid_x", "nclusterid_y", "ntid_x", "ntidy", "cluster_nctarank")
ARRIVES = """
@kernel(threads=64)
def {kernel}(src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], {name}: Int32):
    var bars = unsafe_stack_allocation[1, SharedMemBarrier, address_space=.SHARED]()
    var tile = unsafe_stack_allocation[32, Float32, address_space=.SHARED]()
    if thread_idx.x == 0:
        bars[].init(32)
    barrier()
    var lane = Int32(thread_idx.x) % 32
    if thread_idx.x < 32:
        if {condition}:
            tile[unsafe_offset=lane] = src[unsafe_offset=lane]
            bars[].arrive()
    elif {condition}:
        bars[].wait(0)
        res[unsafe_offset=lane] = tile[unsafe_offset=lane]
"""


def _arrives(name: str, waits: str, kernel: str = "kernel") -> str:
    """A kernel whose producer arrives if a parameter is not negative. waits: when its consumer waits."""
    text = ARRIVES.format(kernel=kernel, name=name, condition=f"{name} >= 0")
    return text.replace(f"elif {name} >= 0", f"elif {waits}")


@pytest.mark.parametrize("name", NAMES)
def test_a_parameter_may_be_negative(name: str) -> None:
    assert verdict(_arrives(name, f"{name} >= 0")).verdict == "proved"
    assert verdict(_arrives(name, "True")).kinds == ("missing arrive",)


@pytest.mark.parametrize("kernel", ["nckernel", "ntid_kernel"])
def test_in_ptx_parameters_are_called_as_the_kernel_is(kernel: str) -> None:
    assert verdict_of_ptx(_arrives("n", "n >= 0", kernel)).verdict == "proved"
    assert verdict_of_ptx(_arrives("n", "True", kernel)).kinds == ("missing arrive",)


def test_least_values_of_what_is_uniform() -> None:
    assert {least(uniform(name), {}) for name in SIZES} == {0}
    assert {least(uniform(name), {}) for name in ("n#0", "nchunks#1", "ntid_x#2", "nctaid_x#3")} == {NONE}
