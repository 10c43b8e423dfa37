"""Faults and hangs on the card come back as themselves; forks, threads, contexts, leaks."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import ptxdsl

pytestmark = pytest.mark.device

START = """
import os, sys, time
import numpy as np
import torch, ptxdsl
kernel = ptxdsl.loads({text!r}, "faulty.pdsl")["k"]
"""


@pytest.fixture
def run_program(gpu):
    """run_program(text of a kernel k, Python): its output; the process ends without waiting for the device."""

    def run(text, body, **options):
        code = START.format(text=text) + body + "\nsys.stdout.flush(); sys.stderr.flush(); os._exit(0)\n"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, **options)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


WATCHED = """
try:
    {launch}
    print("no problem at all")
except ptxdsl.DeviceError as problem:
    print(problem)
    report = problem.replay()
    print("replayed:", report.status)
    print(report.render())
"""

WRITE = """
@kernel
def k(p: Pointer[Int32, MutAnyOrigin], i: Int64):
    p[unsafe_offset=i] = 1
"""


def test_an_illegal_address_names_kernel_and_shape_and_is_replayed(run_program):
    body = 'p = torch.zeros(4, dtype=torch.int32, device="cuda")\n'
    said = run_program(WRITE, body + WATCHED.format(launch="kernel[2, (32, 2)](p, 1 << 44, timeout=20)"))
    assert "error[E0916]: kernel 'k' (grid (2, 1, 1), block (32, 2, 1)) failed: a kernel read or wrote memory" in said
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in said and "the CUDA context is lost" in said
    assert "replayed: fault" in said
    assert "p[unsafe_offset=i] = 1" in said.partition("replayed")[2]


def test_a_misaligned_address(run_program):
    text = """
@kernel
def k(p: Pointer[Int32, MutAnyOrigin]):
    inlined_assembly["st.global.b32 [$0], 1;", NoneType, constraints="l", has_side_effect=True](
        p.bitcast[UInt8]().unsafe_offset(1)
    )
"""
    body = 'p = torch.zeros(4, dtype=torch.int32, device="cuda")\n'
    said = run_program(text, body + WATCHED.format(launch="kernel[1, 1](p, timeout=20)"))
    assert "CUDA_ERROR_MISALIGNED_ADDRESS" in said and "replayed: fault" in said


def test_a_failed_assertion_is_one(run_program):
    text = """
@kernel
def k(n: Int32):
    debug_assert(n > 0, "n is positive")
"""
    said = run_program(text, WATCHED.format(launch="kernel[1, 32](-1, timeout=20)"))
    assert 'its debug_assert "n is positive" does not hold, in 32 threads (CUDA_ERROR_ASSERT)' in said
    assert "faulty.pdsl:4:5" in said
    assert "n is positive" in said.partition("replayed: fault")[2]


def test_the_text_of_an_assertion_has_its_line(gpu):
    text = '@kernel\ndef k(n: Int32):\n    debug_assert(n > 0, "n is positive")\n'
    code = START.format(text=text) + "kernel[1, 1](-1)\ntry: torch.cuda.synchronize()\nexcept Exception: pass\n"
    done = subprocess.run([sys.executable, "-c", code + "os._exit(0)"], capture_output=True, text=True, timeout=120)
    assert "faulty.pdsl:3" in done.stdout + done.stderr
    assert "n is positive" in done.stdout + done.stderr


HANG = """
@kernel
def k(p: Pointer[Int32, MutAnyOrigin]):
    var bar = unsafe_stack_allocation[1, SharedMemBarrier, address_space=.SHARED, alignment=8]()
    if thread_idx.x == 0:
        bar[].init(2)
        _ = bar[].arrive()
        bar[].wait(0)
        p[] = 1
"""


def test_a_hang_is_said_to_be_one_and_the_replay_finds_the_deadlock(run_program):
    body = 'p = torch.zeros(1, dtype=torch.int32, device="cuda")\nstart = time.monotonic()\n'
    body += WATCHED.format(launch="kernel[1, 32](p, timeout=1)") + "print('seconds', time.monotonic() - start)\n"
    said = run_program(HANG, body)
    assert "error[E0915]: kernel 'k' (grid (1, 1, 1), block (32, 1, 1)) has not ended within 1 s" in said
    assert "replayed: deadlock" in said and "bar[].wait(0)" in said
    assert float(said.rsplit("seconds", 1)[1]) < 60


REGISTERS = """
@kernel(threads=384, min_blocks=1)
def k(p: Pointer[Int32, MutAnyOrigin]):
    if warp_id() < 4:
        warpgroup_reg_dealloc[40]()
    else:
        warpgroup_reg_alloc[MORE]()
        p[unsafe_offset=thread_idx.x] = 1
"""


@pytest.mark.parametrize("more", [232, 240])
def test_warpgroups_wait_for_registers_that_nobody_gives_back(run_program, more):
    """128 threads keep 40 of the 168 registers that each has at the launch: the other 256 can have 232."""
    body = 'p = torch.zeros(384, dtype=torch.int32, device="cuda")\n'
    body += WATCHED.format(launch="kernel[1, 384](p, timeout=1)").replace("no problem at all", "{int(p.sum())} came")
    said = run_program(REGISTERS.replace("MORE", str(more)), body.replace('print("{int', 'print(f"{int'))
    if more == 232:
        assert said.strip() == "256 came"
    else:
        assert "error[E0915]: kernel 'k' (grid (1, 1, 1), block (384, 1, 1)) has not ended within 1 s" in said
        assert "replayed: deadlock" in said and "waits for registers" in said


def test_a_fault_shows_at_the_next_launch_with_what_was_launched_before(run_program):
    body = """
p = torch.zeros(4, dtype=torch.int32, device="cuda")
kernel[3, 64](p, 1 << 44)
try:
    torch.cuda.synchronize()
except Exception:
    pass
other = ptxdsl.loads("@kernel\\ndef fine(n: Int32):\\n    pass\\n")["fine"]
try:
    other[1, 1](0)
except ptxdsl.LaunchError as problem:
    print(problem)
"""
    said = run_program(WRITE, body)
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in said


def test_a_fork_says_so_and_spawn_works(run_program, tmp_path):
    body = """
import multiprocessing
p = torch.zeros(4, dtype=torch.int32, device="cuda")
kernel[1, 1](p, 0)
torch.cuda.synchronize()
child = os.fork()
if child == 0:
    for attempt in range(2):
        try:
            kernel[1, 1](p, 0)
            print("launched in a fork")
        except ptxdsl.LaunchError as problem:
            print(problem.diagnostics[0].code)
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
"""
    assert run_program(WRITE, body).split() == ["E0914", "E0914"]
    script = tmp_path / "spawned.py"
    script.write_text(f"""
import multiprocessing, numpy as np, ptxdsl

def work(kernel):
    p = ptxdsl.to_device(np.zeros(4, np.int32))
    kernel[1, 1](p, 2)
    return p.to_host().tolist()

if __name__ == "__main__":
    kernel = ptxdsl.loads({WRITE!r})["k"]
    print(work(kernel))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(work, (kernel,)))
""")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == ["[0, 0, 1, 0]", "[0, 0, 1, 0]"], done.stderr


def test_after_a_reset_of_the_primary_context_kernels_run_again(run_program):
    """In a process without PyTorch's memory: a reset takes all memory away."""
    body = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
def run():
    p = ptxdsl.to_device(np.zeros(4, np.int32))
    kernel[1, 32](p, 1)
    found = p.to_host().tolist()
    del p
    return found
print(run())
device = ctypes.c_int()
assert not cuda.cuDeviceGet(ctypes.byref(device), 0)
assert not cuda.cuCtxSetCurrent(None) and not cuda.cuDevicePrimaryCtxReset_v2(device)
print(run(), run())
big = ptxdsl.loads('''
@kernel
def big(p: Pointer[Int32, MutAnyOrigin]):
    var room = external_memory[Int32, address_space=AddressSpace.SHARED, alignment=16]()
    room[unsafe_offset=Int32(thread_idx.x)] = 5
    p[unsafe_offset=Int32(thread_idx.x)] = room[unsafe_offset=Int32(thread_idx.x)]
''')["big"]
def large():
    p = ptxdsl.to_device(np.zeros(4, np.int32))
    big[1, 4](p, smem=200 * 1024)
    return p.to_host().tolist()
print(large())
assert not cuda.cuCtxSetCurrent(None) and not cuda.cuDevicePrimaryCtxReset_v2(device)
print(large(), run())
"""
    one, five = "[0, 1, 0, 0]", "[5, 5, 5, 5]"
    assert run_program(WRITE, body).splitlines() == [one, f"{one} {one}", five, f"{five} {one}"]


def test_threads_launch_the_same_kernel(gpu):
    text = """
@kernel
def fill(p: Pointer[Int32, MutAnyOrigin], value: Int32, n: Int32):
    var i = Int32(thread_idx.x)
    if i < n:
        p[unsafe_offset=i] = value
"""
    kernel = ptxdsl.loads(text)["fill"]
    wrong = []

    def work(number):
        p = ptxdsl.to_device(np.zeros(32, np.int32))  # the thread has no context before this
        for i in range(500):
            kernel[1, 32](p, 1000 * number + i, 32)
            if i % 100 == 99 and (p.to_host() != 1000 * number + i).any():
                wrong.append((number, i))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_threads_on_all_devices(gpu):
    """The same kernel, on a device of its own in each thread."""
    if gpu.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    text = "@kernel\ndef where(p: Pointer[Int32, MutAnyOrigin], n: Int32):\n    p[] += n\n"
    kernel = ptxdsl.loads(text)["where"]
    found = {}

    def work(index):
        p = gpu.zeros(1, dtype=gpu.int32, device=f"cuda:{index}")
        with gpu.cuda.device(index):
            go = kernel.prepare(1, 1, p, 1000)
            for i in range(500):
                kernel[1, 1](p, i)
                go()
            found[index] = p.item()

    threads = [threading.Thread(target=work, args=(index,)) for index in range(gpu.cuda.device_count())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(len(threads)), sum(range(500)) + 500 * 1000)


def test_100_000_launches_leak_nothing(run_program):
    body = """
import resource
p = torch.zeros(4, dtype=torch.int32, device="cuda")
go = kernel.prepare(1, 32, p, 0)
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
def launch(count):
    for i in range(count):
        kernel[1, 32](p, i & 3)
        go()
        if i % 500 == 0:
            torch.cuda.synchronize()
    torch.cuda.synchronize()
launch(20_000)
before, free = resident(), torch.cuda.mem_get_info()[0]
launch(100_000)
print(resident() - before, free - torch.cuda.mem_get_info()[0])
"""
    host, device = map(int, run_program(WRITE, body).split())
    assert host < 4 << 20 and device == 0, (host, device)


def test_all_devices(gpu):
    if gpu.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    text = "@kernel\ndef where(p: Pointer[Int32, MutAnyOrigin], n: Int32):\n    p[] = n\n"
    kernel = ptxdsl.loads(text)["where"]
    tensors = [gpu.zeros(1, dtype=gpu.int32, device=f"cuda:{i}") for i in range(2)]
    for round_ in range(3):
        for i, tensor in enumerate(tensors):
            with gpu.cuda.device(i):
                kernel[1, 1](tensor, 10 * round_ + i)
                assert tensor.item() == 10 * round_ + i
    with gpu.cuda.device(0):
        with pytest.raises(ptxdsl.LaunchError, match="is on device 1"):
            kernel[1, 1](tensors[1], 1)
        go = kernel.prepare(1, 1, tensors[0], 77)
    with gpu.cuda.device(1), pytest.raises(ptxdsl.LaunchError, match="was prepared for device 0"):
        go()
    go()
    assert tensors[0].item() == 77
