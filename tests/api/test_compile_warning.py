"""Who launches a kernel learns of what its compilation warned of."""

import numpy as np
import pytest

import ptxdsl

TEXT = """
@kernel(threads=64)
def early(x: Pointer[Float32, MutAnyOrigin]):
    var tile = unsafe_stack_allocation[64, Float32, address_space=.SHARED]()
    tile[unsafe_offset=thread_idx.x] = x[unsafe_offset=thread_idx.x]
    x[unsafe_offset=thread_idx.x] = tile[unsafe_offset=63 - thread_idx.x]  # the barrier is missing
"""


def launched(kernel):
    kernel[1, 64](np.zeros(64, np.float32), target="sim")


def simulated(kernel):
    kernel.simulate(np.zeros(64, np.float32))


@pytest.mark.parametrize("run", [launched, simulated])
def test_once_at_the_line_of_the_launch(run):
    kernel = ptxdsl.loads(TEXT, "early.pdsl").early
    with pytest.warns(ptxdsl.CompileWarning, match=r"E1215.*data race(.|\n)*early.pdsl:6:") as told:
        run(kernel)
    assert [warning.filename for warning in told] == [__file__]
    run(kernel)  # a second warning would be an error here


def test_none_where_only_the_diagnostics_are_wanted():
    assert [d.code for d in ptxdsl.loads(TEXT, "early.pdsl").early.compile().warnings] == ["E1215"]


def test_none_where_nothing_is_checked():
    launched(ptxdsl.loads(TEXT, "early.pdsl", check="off").early)


def test_an_error_where_that_is_wanted():
    with pytest.raises(ptxdsl.CompileError, match="E1215"):
        launched(ptxdsl.loads(TEXT, "early.pdsl", check="error").early)
