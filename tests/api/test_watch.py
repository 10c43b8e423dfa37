"""Launches with a time limit: faults and hangs are those of the kernel, and are replayed in the simulator."""

import os

import numpy as np
import pytest
from played_driver import Tensor

import ptxdsl
from ptxdsl.api.module import Module
from ptxdsl.cuda.arrays import Donated
from ptxdsl.cuda.assertions import listening
from ptxdsl.source import Source

TEXT = """
@kernel
def write(p: Pointer[Float32, MutAnyOrigin], q: Pointer[Float32, MutAnyOrigin], i: Int64):
    if thread_idx.x == 0:
        p[unsafe_offset=i] = q[unsafe_offset=0] + 1


@fieldwise_init
struct Two(TrivialRegisterPassable):
    var p: Pointer[BFloat16, MutAnyOrigin]
    var n: Int32

@kernel
def hang(two: Two):
    var bar = unsafe_stack_allocation[1, SharedMemBarrier, address_space=.SHARED, alignment=8]()
    if thread_idx.x == 0:
        bar[].init(2)
        _ = bar[].arrive()
        bar[].wait(0)


@kernel
def checked(p: Pointer[Float32, MutAnyOrigin], n: Int32):
    debug_assert(n > 0, "n is positive")
    p[] = 1
"""


@pytest.fixture
def module(driver):
    return Module(Source("watched.pdsl", TEXT), driver=driver)


def problem_of(call):
    with pytest.raises(ptxdsl.LaunchError) as caught:
        call()
    return caught.value


def test_a_kernel_that_ends_is_waited_for(module, driver, tensor):
    driver.memory = {0x40: bytes(32), 0x80: bytes(32)}
    module.write[1, 32](tensor(0x40), tensor(0x80), 1, timeout=5)
    assert len(driver.launches) == 1


def test_a_fault_is_the_kernels_own_and_is_replayed(module, driver, tensor):
    driver.memory = {0x40: bytes(32), 0x80: np.full(8, 6, np.float32).tobytes()}
    launcher = module.write[2, (32, 2)]
    real = driver.launch_ex

    def fault(*given):
        driver.fails["reached"] = ("CUDA_ERROR_ILLEGAL_ADDRESS", "")
        return real(*given)

    driver.launch_ex = fault
    problem = problem_of(lambda: launcher(tensor(0x40), tensor(0x80), 1 << 40, timeout=5))
    assert isinstance(problem, ptxdsl.DeviceError) and problem.replayable
    (found,) = problem.diagnostics
    assert (found.code, found.message) == (
        "E0916",
        "kernel 'write' (grid (2, 1, 1), block (32, 2, 1)) failed: a kernel read or wrote memory outside of any "
        "allocation (CUDA_ERROR_ILLEGAL_ADDRESS)",
    )
    assert found.help.startswith("the CUDA context is lost and the process must be started anew. problem.replay()")
    report = problem.replay()
    assert report.status == "fault"
    assert "p[unsafe_offset=i] = q[unsafe_offset=0] + 1" in report.render()


PRINTED = """\
watched.pdsl:24: checked: block: [0,0,0], thread: [3,0,0] Assertion `n is positive` failed.
watched.pdsl:24: checked: block: [0,0,0], thread: [4,0,0] Assertion `n is positive` failed.
"""


def test_what_the_driver_prints_of_an_assertion_is_shown_at_its_line(module, driver, tensor, capfd):
    driver.memory = {0x40: bytes(32)}
    real = driver.launch_ex

    def fail(*given):
        os.write(2, PRINTED.encode())
        driver.fails["reached"] = ("CUDA_ERROR_ASSERT", "")
        return real(*given)

    driver.launch_ex = fail
    problem = problem_of(lambda: module.checked[1, 32](tensor(0x40), -1, timeout=5))
    (found,) = problem.diagnostics
    assert (found.code, found.message) == (
        "E0916",
        "kernel 'checked' (grid (1, 1, 1), block (32, 1, 1)) failed: its debug_assert \"n is positive\" does not hold, "
        "in 2 threads (CUDA_ERROR_ASSERT)",
    )
    assert str(found.span) == "watched.pdsl:24:5" and problem.replayable
    assert capfd.readouterr().err == PRINTED  # it still is where it would have been


def test_standard_error_comes_back_when_two_listen_and_the_first_ends_first(capfd):
    first, second = listening(), listening()
    kept, _ = first.__enter__(), second.__enter__()
    os.write(2, b"said meanwhile\n")
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    os.write(2, b"said afterwards\n")
    assert kept.text == "said meanwhile\n"
    assert capfd.readouterr().err == "said meanwhile\nsaid afterwards\n"


def test_a_replay_has_the_arrays_of_before(module, driver, tensor):
    """Copies: they overlap where the arrays do, and another replay finds them as the first left them."""
    memory = np.arange(16, dtype=np.float32)
    driver.memory = {0x40: memory.tobytes()}
    driver.endless = True
    first, second = tensor(0x40, shape=(8,)), tensor(0x40 + 4 * 4, shape=(12,))
    problem = problem_of(lambda: module.write[1, 32](first, second, 5, timeout=0.01))
    report = problem.replay()
    assert report.finished
    assert problem.diagnostics[0].code == "E0915"


@pytest.mark.filterwarnings("ignore::ptxdsl.CompileWarning")
def test_a_hang_is_one_and_the_replay_finds_the_deadlock(module, driver, tensor):
    driver.memory = {0x40: bytes(16)}
    driver.endless = True
    problem = problem_of(lambda: module.hang[1, 32]((tensor(0x40, "bfloat16"), 3), timeout=0.02))
    (found,) = problem.diagnostics
    assert (found.code, found.message) == (
        "E0915",
        "kernel 'hang' (grid (1, 1, 1), block (32, 1, 1)) has not ended within 0.02 s: it hangs, or needs longer",
    )
    assert "its CUDA context is lost: end the process" in found.help
    assert driver.hangs
    report = problem.replay(schedule="random:3")
    assert report.status == "deadlock"
    assert "bar[].wait(0)" in report.render()


def test_what_ran_before_is_not_blamed_on_the_kernel(module, driver, tensor):
    driver.fails["reached"] = ("CUDA_ERROR_MISALIGNED_ADDRESS", "")
    problem = problem_of(lambda: module.write[1, 32](tensor(0x40), tensor(0x80), 1, timeout=5))
    assert problem.diagnostics[0].message.startswith("what was launched before failed: a kernel used an address")
    assert driver.launches == [] and not problem.replayable
    problem = problem_of(problem.replay)
    assert problem.diagnostics[0].code == "E0917"


def test_arrays_that_are_too_large_are_not_copied(module, driver, tensor):
    driver.endless = True
    large = tensor(0x40, shape=(65 << 20,))
    problem = problem_of(lambda: module.write[1, 32](large, tensor(0x80), 1, timeout=0.01))
    assert not problem.replayable
    assert "kernel.simulate(…) runs the same kernel" in problem.diagnostics[0].help


def test_a_capture_cannot_be_waited_for(module, driver, tensor):
    driver.capturing = True
    problem = problem_of(lambda: module.write[1, 32](tensor(0x40), tensor(0x80), 1, timeout=1))
    assert problem.diagnostics[0].message == (
        "kernel 'write' (grid (1, 1, 1), block (32, 1, 1)) cannot be waited for while its stream is being captured "
        "into a graph"
    )


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        ("copy", "E0912", "the arrays of kernel 'write' (grid (1, 1, 1), block (32, 1, 1)) cannot be copied"),
        ("capturing", "E0916", "what was launched before failed"),
        ("context", "E0912", "there is no CUDA context to launch in"),
        ("reached", "E0916", "what was launched before failed"),
    ],
)
def test_whatever_the_driver_refuses_is_an_error_of_ours(module, driver, tensor, call, code, words):
    driver.memory = {0x40: bytes(32), 0x80: bytes(32)}
    driver.fails[call] = ("CUDA_ERROR_ILLEGAL_ADDRESS", "")
    problem = problem_of(lambda: module.write[1, 32](tensor(0x40), tensor(0x80), 1, timeout=1))
    found = problem.diagnostics[0]
    assert found.code == code and found.message.startswith(words)


def test_the_driver_may_refuse_to_say_where_an_array_lies(module, driver, array):
    driver.fails["pointer"] = ("CUDA_ERROR_INVALID_CONTEXT", "")
    problem = problem_of(lambda: module.write[1, 32](array(0x40), array(0x80), 1))
    assert problem.diagnostics[0].message == (
        "the launch of kernel 'write' failed: the CUDA context of this thread is not valid (CUDA_ERROR_INVALID_CONTEXT)"
    )


def test_a_donated_array_is_waited_for(module, driver, tensor):
    module.write[1, 32](Donated(tensor(0x40)), tensor(0x80), 1)
    assert driver.waited == [0x77]
    driver.fails["synchronise"] = ("CUDA_ERROR_LAUNCH_FAILED", "")
    problem = problem_of(lambda: module.write[1, 32](Donated(tensor(0x40)), tensor(0x80), 1))
    assert problem.diagnostics[0].code == "E0916"
    driver.capturing = True
    module.write[1, 32](Donated(tensor(0x40)), tensor(0x80), 1)
    problem = problem_of(lambda: module.write.prepare(1, 32, Donated(Tensor(0x40)), tensor(0x80), 1))
    assert "cannot take a donated array" in problem.diagnostics[0].message


@pytest.mark.filterwarnings("ignore::ptxdsl.CompileWarning")
def test_a_fault_of_an_earlier_launch_names_what_was_launched(module, driver, tensor):
    module.write[3, 64](tensor(0x40), tensor(0x80), 1)
    driver.fails["launch"] = ("CUDA_ERROR_ILLEGAL_ADDRESS", "")
    problem = problem_of(lambda: module.hang[1, 32]((tensor(0x40, "bfloat16"), 3)))
    assert isinstance(problem, ptxdsl.DeviceError)
    (found,) = problem.diagnostics
    assert found.message.startswith("kernel 'hang' (grid (1, 1, 1), block (32, 1, 1)) was not started")
    assert "kernel 'write' (grid (3, 1, 1), block (64, 1, 1))" in found.help


def test_a_simulated_launch_can_not_be_replayed(module):
    problem = problem_of(lambda: module.write[1, 1](np.zeros(1, np.float32), np.zeros(1, np.float32), 9, target="sim"))
    assert not problem.replayable
