"""Kernels of the Python API in the simulator."""

from functools import partial

import numpy as np
import pytest

import ptxdsl
from ptxdsl.cuda import driver
from ptxdsl.cuda.simulated import raise_unless_finished, runs_in_simulator
from ptxdsl.diagnostics import launch_error
from ptxdsl.sim.launch import Report
from ptxdsl.sim.limits import Statistics
from ptxdsl.sim.machine.schedule import Schedule

TEXT = """
@kernel(threads=64)
def double[factor: Int = 2](x: Pointer[Float32, MutAnyOrigin], n: Int32):
    var i = Int32(global_idx.x)
    if i < n:
        x[unsafe_offset=i] = x[unsafe_offset=i] * Float32(factor)


def hang(x: Pointer[Float32, MutAnyOrigin]):
    var bar = unsafe_stack_allocation[1, SharedMemBarrier, address_space=.SHARED, alignment=8]()
    if thread_idx.x == 0:
        bar[].init(2)
        _ = bar[].arrive()
        bar[].wait(0)
"""


@pytest.fixture(scope="module")
def module():
    return ptxdsl.loads(TEXT, "double.pdsl")


def test_arrays_are_changed_in_place_and_the_report_counts(module):
    x = np.arange(100, dtype=np.float32)
    report = module.double.simulate(x, 90, grid=2)
    assert report.finished
    assert report.statistics.thread_instructions > 128
    assert np.array_equal(x, np.where(np.arange(100) < 90, 2, 1) * np.arange(100))


def test_a_specialised_kernel_and_another_target(module):
    x = np.ones(64, np.float32)
    assert module.double.specialize(factor=5).simulate(x, 64, arch="sm_120a").finished
    assert (x == 5).all()


def test_blocks_of_a_cooperative_launch_begin_at_once():
    """Each says how many have begun when all its own warps have; a block fills the room for blocks that take turns."""
    text = """
@kernel(threads=1024)
def begun(count: Pointer[Int32, MutAnyOrigin], seen: Pointer[Int32, MutAnyOrigin]):
    if thread_idx.x == 0:
        _ = Atomic.fetch_add(count, 1)
    barrier()
    if thread_idx.x == 0:
        seen[unsafe_offset=block_idx.x] = count[]
"""
    begun = ptxdsl.loads(text, "begun.pdsl").begun
    for cooperative, expected in ((False, [1, 2, 3, 4]), (True, [4, 4, 4, 4])):
        count, seen = np.zeros(1, np.int32), np.zeros(4, np.int32)
        assert begun.simulate(count, seen, grid=4, cooperative=cooperative).finished
        assert seen.tolist() == expected
        count, seen = np.zeros(1, np.int32), np.zeros(4, np.int32)
        begun[4, 1024](count, seen, target="sim", cooperative=cooperative)
        assert seen.tolist() == expected


def test_a_dependent_launch_needs_a_target_that_has_it(module):
    x = np.ones(64, np.float32)
    assert module.double.simulate(x, 64, pdl=True).finished and (x == 2).all()
    with pytest.raises(ptxdsl.LaunchError, match="compiled for sm_80") as caught:
        module.double.simulate(x, 64, pdl=True, arch="sm_80")
    assert caught.value.diagnostics[0].code == "E0918"


@pytest.mark.parametrize("schedule", ["round-robin", "random:4", "slow:warp0"])
def test_every_schedule_gives_the_same(module, schedule):
    x = np.ones(128, np.float32)
    report = module.double.simulate(x, 128, grid=2, schedule=schedule, record=True)
    assert (x == 2).all()
    again = np.ones(128, np.float32)
    assert module.double.simulate(again, 128, grid=2, schedule=report.recording.to_json()).finished
    assert (again == 2).all()


def test_pointers_of_different_spaces_are_equal_where_they_point_to_the_same():
    text = """
@kernel(threads=32)
def k(res: Pointer[Int32, MutAnyOrigin]):
    var near = unsafe_stack_allocation[4, Int32, address_space=.SHARED, alignment=16]()
    var anywhere = near.address_space_cast[AddressSpace.GENERIC]()
    res[unsafe_offset=thread_idx.x] = Int32(near == anywhere) + 2 * Int32(anywhere + 1 == near) + 4 * Int32(res == near)
"""
    res = np.full(32, -1, np.int32)
    ptxdsl.loads(text, "spaces.pdsl").k.simulate(res)
    assert (res == 1).all()


def test_a_launch_of_host_arrays_is_simulated_where_asked(module):
    x = np.ones(64, np.float32)
    module.double[1, 64](x, 64, target="sim")
    assert (x == 2).all()


def test_what_a_simulated_launch_prints_is_printed(capsys):
    body = "    print('n is', n)\n    debug_assert(n < 8, 'small')\n"
    hello = ptxdsl.loads(f"@kernel\ndef hello(n: Int32):\n{body}").hello
    hello[1, 2](7, target="sim")
    assert capsys.readouterr().out == "n is 7\nn is 7\n"
    with pytest.raises(ptxdsl.DeviceError):
        hello[1, 1](8, target="sim")
    assert capsys.readouterr().out.startswith("n is 8\n")


STRUCTS = """
struct Row:
    var x: Pointer[Float32, MutAnyOrigin]
    var n: Int32


@kernel
def double(row: Row):
    if Int32(thread_idx.x) < row.n:
        row.x[unsafe_offset=thread_idx.x] *= 2
"""


@pytest.fixture
def without_a_gpu(monkeypatch):
    def none():
        raise launch_error("E0902", "no driver")

    monkeypatch.setattr(driver, "current_driver", none)


@pytest.mark.parametrize(
    ("text", "given"),
    [(TEXT, lambda x: (x, 64)), (STRUCTS, lambda x: ((x, 64),)), (STRUCTS, lambda x: ({"x": x, "n": 64},))],
)
def test_without_a_gpu_arrays_of_the_host_are_simulated(without_a_gpu, text, given):
    """On a machine that has one they are refused: a launch does not go elsewhere than it seems to."""
    x = np.ones(64, np.float32)
    ptxdsl.loads(text).double[1, 64](*given(x))
    assert (x == 2).all()
    assert not runs_in_simulator(None, given(x), has_driver=True)


@pytest.mark.parametrize(("given", "words"), [(5, "got int 5"), ([1.0], "got list"), (None, "got None")])
def test_without_a_gpu_what_is_no_array_is_refused_as_such(without_a_gpu, module, given, words):
    with pytest.raises(ptxdsl.LaunchError, match=f"Float32]; {words}") as caught:
        module.double[1, 64](given, 6)
    assert caught.value.diagnostics[0].code == "E0904"


def test_without_a_gpu_a_kernel_without_arrays_is_simulated(without_a_gpu, capsys):
    ptxdsl.loads("@kernel\ndef hello():\n    print('hello')\n").hello[1, 2]()
    assert capsys.readouterr().out == "hello\nhello\n"


@pytest.mark.parametrize(("keyword", "code"), [({"timeout": -1}, "E0915"), ({"stream": "s"}, "E0910")])
def test_what_only_the_card_looks_at_is_right_here_too(module, keyword, code):
    x = np.ones(64, np.float32)
    with pytest.raises(ptxdsl.LaunchError, match=code):
        module.double[1, 64](x, 64, target="sim", **keyword)
    assert (x == 1).all()
    module.double[1, 64](x, 64, target="sim", timeout=1, stream=0)


@pytest.mark.filterwarnings("ignore::ptxdsl.CompileWarning")
def test_a_deadlock_is_a_device_error_with_the_line(module):
    with pytest.raises(ptxdsl.DeviceError) as caught:
        module.hang[1, 32](np.ones(1, np.float32), target="sim")
    problem = caught.value.diagnostics[0]
    assert "bar[].wait(0)" in str(caught.value)
    assert problem.span is not None
    assert problem.span.source.name == "double.pdsl"


def test_what_cannot_be_launched_is_said_before(module):
    x = np.ones(64, np.float32)
    for call, words in (
        (lambda: module.double.simulate(x, grid=1), "takes 2 arguments"),
        (lambda: module.double.simulate(x.astype(np.float64), 3), "got an array of float64"),
        (lambda: module.double.simulate(x, 3, block=32), "64"),
        (lambda: module.hang.simulate(x), "needs a block size"),
        (lambda: module.double[1, 64](x, 3, target="tpu"), "target='tpu'"),
    ):
        with pytest.raises(ptxdsl.LaunchError, match=words):
            call()
    assert (x == 1).all()


def test_an_interrupted_launch_is_an_interrupt():
    """Whoever handles errors of launches does not go on."""
    report = Report("k", "interrupted", (), Statistics(), Schedule())
    with pytest.raises(KeyboardInterrupt, match="kernel 'k': interrupted"):
        raise_unless_finished(report)


def test_limits_are_numbers(module):
    with pytest.raises(TypeError, match=r"the limit steps is a whole number from 0, not '9'"):
        module.double.simulate(np.zeros(4, np.float32), 4, limits=ptxdsl.Limits(steps="9"))


def test_dynamic_shared_memory_has_a_size():
    """As on a card: E0909 where the launch gives none."""
    text = """
@kernel(threads=64)
def reverse(x: Pointer[Int32, MutAnyOrigin]):
    var tile = external_memory[Int32, address_space=AddressSpace.SHARED, alignment=16]()
    tile[unsafe_offset=thread_idx.x] = x[unsafe_offset=thread_idx.x]
    barrier()
    x[unsafe_offset=thread_idx.x] = tile[unsafe_offset=63 - thread_idx.x]
"""
    reverse = ptxdsl.loads(text, "reverse.pdsl").reverse
    x = np.arange(64, dtype=np.int32)
    with pytest.raises(ptxdsl.LaunchError, match="uses dynamic shared memory") as caught:
        reverse.simulate(x)
    assert caught.value.diagnostics[0].code == "E0909"
    assert reverse.simulate(x, smem=256).finished and x.tolist() == list(range(63, -1, -1))


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        ({"smem": "x"}, "E0909", "smem must be a number of bytes, got str 'x'"),
        ({"smem": True}, "E0909", "smem must be a number of bytes, got bool True"),
        ({"smem": -4}, "E0909", "smem is -4; it must not be negative"),
        ({"cooperative": 1}, "E0918", "cooperative is True or False, got int 1"),
        ({"pdl": "no"}, "E0918", "pdl is True or False, got str 'no'"),
    ],
)
@pytest.mark.parametrize("line", ["    _ = dynamic_shared[1024]()\n", "    pass\n"])
def test_a_simulation_refuses_what_a_launch_refuses(given, code, message, line):
    """With the very words, whether or not the kernel says how much shared memory it uses."""
    uses = ptxdsl.loads(f"from layout import dynamic_shared\n\n@kernel(threads=1)\ndef uses():\n{line}").uses
    for call in uses.simulate, partial(uses[1, 1], target="sim"):
        with pytest.raises(ptxdsl.LaunchError) as caught:
            call(**given)
        (found,) = caught.value.diagnostics
        assert (found.code, found.message) == (code, message)


def test_a_kernel_says_how_much_dynamic_shared_memory_it_uses():
    """The most that any of its calls of ``dynamic_shared`` names, so that the launch need not."""
    text = """
from layout import dynamic_shared

@kernel(threads=64)
def reverse[wide: Bool = False](x: Pointer[Int32, MutAnyOrigin], size: Pointer[Int32, MutAnyOrigin]):
    var tile = dynamic_shared[256]().bitcast[Int32]()
    comptime if wide:
        _ = dynamic_shared[50000]()
    _ = dynamic_shared[16]()
    tile[unsafe_offset=thread_idx.x] = x[unsafe_offset=thread_idx.x]
    barrier()
    x[unsafe_offset=thread_idx.x] = tile[unsafe_offset=63 - thread_idx.x]
    size[] = inlined_assembly["mov.u32 $0, %dynamic_smem_size;", Int32, constraints="=r"]()
"""
    reverse = ptxdsl.loads(text, "reverse.pdsl").reverse
    x, size = np.arange(64, dtype=np.int32), np.zeros(1, np.int32)
    for kernel, smem, bytes_ in (reverse, None, 256), (reverse, 512, 512), (reverse.specialize(wide=True), None, 50000):
        assert kernel.simulate(x, size, smem=smem).finished and size[0] == bytes_
    reverse[1, 64](x, size, target="sim")
    assert size[0] == 256
    with pytest.raises(ptxdsl.LaunchError, match="smem is 255 bytes; kernel 'reverse_False' uses 256 bytes"):
        reverse[1, 64](x, size, smem=255, target="sim")
