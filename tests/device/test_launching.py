"""Parameters, shared memory, streams, printing and faults, on a real card."""

import subprocess
import sys

import numpy as np
import pytest

import ptxdsl

STRUCTS = """
@fieldwise_init
struct Line(TrivialRegisterPassable):
    var slope: Float32
    var base: Int32

@kernel
def lines(line: Line, keep: Bool, bias: Float64, res: Pointer[Float32, MutAnyOrigin], n: Int32):
    var i = Int32(thread_idx.x)
    if i < n:
        res[unsafe_offset=i] = line.slope * Float32(i + line.base) + Float32(bias) if keep else 0
"""


def test_struct_bool_and_float_parameters_arrive(launch, output):
    kernel = ptxdsl.loads(STRUCTS)["lines"]
    res = output(40)
    launch(kernel, 1, 64, (0.5, -3), True, 0.25, res, 40)
    assert np.array_equal(res.read(), 0.5 * (np.arange(40, dtype=np.float32) - 3) + np.float32(0.25))
    launch(kernel, 1, 64, {"base": 1, "slope": 2.0}, False, 0.25, res, 40)
    assert not res.read().any()


DYNAMIC = """
@kernel
def reverse(a: Pointer[Int32, MutAnyOrigin], res: Pointer[Int32, MutAnyOrigin], n: Int32):
    var buf = external_memory[Int32, address_space=AddressSpace.SHARED, alignment=16]()
    var i = Int32(thread_idx.x)
    while i < n:
        buf[unsafe_offset=i] = a[unsafe_offset=i]
        i += Int32(block_dim.x)
    barrier()
    i = Int32(thread_idx.x)
    while i < n:
        res[unsafe_offset=i] = buf[unsafe_offset=n - 1 - i]
        i += Int32(block_dim.x)
"""


def test_dynamic_shared_memory_of_every_size(launch, output, device, rng):
    """Small, around 48 KiB, the most there is, and small again: the limit must not shrink under a later launch."""
    kernel = ptxdsl.loads(DYNAMIC)["reverse"]
    for size in (64, 48 * 1024 - 4, 48 * 1024, 48 * 1024 + 4, 227 * 1024, 64, 227 * 1024):
        n = size // 4
        a = rng.integers(-1000, 1000, n, dtype=np.int32)
        res = output(n, np.int32)
        launch(kernel, 1, 256, device(a), res, n, smem=size)
        assert np.array_equal(res.read(), a[::-1]), size
    with pytest.raises(ptxdsl.LaunchError, match=r"1048576 bytes"):
        launch(kernel, 1, 256, device(a), res, 1, smem=1 << 20)


@pytest.mark.device
def test_the_callers_stream_is_used(gpu, device, rng):
    """A launch on PyTorch's current stream waits for what was put there before, and events around it see it."""
    kernel = ptxdsl.loads(STRUCTS)["lines"]
    kernel[1, 64]((1.0, 0), True, 0.0, gpu.empty(40, device="cuda"), 40)  # compiled and loaded before the clock runs
    gpu.cuda.synchronize()
    stream = gpu.cuda.Stream()
    with gpu.cuda.stream(stream):
        res = gpu.full((40,), float("nan"), device="cuda")
        kernel[1, 64]((1.0, 0), True, 0.0, res, 40)  # compiling takes longer than the sleep
        res.fill_(float("nan"))
        gpu.cuda._sleep(100_000_000)
        kernel[1, 64]((1.0, 0), True, 0.0, res, 40)
        done = stream.record_event()
        assert not done.query()  # it stands behind the sleep
    stream.synchronize()
    assert np.array_equal(res.cpu().numpy(), np.arange(40, dtype=np.float32))


PROGRAM = """
import torch, ptxdsl
kernel = ptxdsl.loads('''{text}''')["k"]
{body}
"""


@pytest.fixture
def run_program(gpu):
    """A process of its own: printing goes to its standard output, and a fault costs only its context."""

    def run(text, body):
        command = [sys.executable, "-c", PROGRAM.format(text=text, body=body)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    return run


def test_print(run_program):
    text = """
@kernel
def k(n: Int32, x: Float64):
    if thread_idx.x == 1:
        print("n", n, "x", x, True)
"""
    done = run_program(text, "kernel[1, 32](-5, 0.5)\ntorch.cuda.synchronize()")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["n", "-5", "x", "0.5", "True"]


def test_an_illegal_address_is_reported_as_such_by_the_next_launch(run_program):
    text = """
@kernel
def k(p: Pointer[Int32, MutAnyOrigin], i: Int64):
    p[unsafe_offset=i] = 1
"""
    body = """
p = torch.zeros(4, dtype=torch.int32, device="cuda")
kernel[1, 1](p, 1 << 44)
try:
    torch.cuda.synchronize()
except Exception:
    pass
try:
    kernel[1, 1](p, 0)
except ptxdsl.LaunchError as problem:
    print(problem)
"""
    done = run_program(text, body)
    assert "E0912" in done.stdout, done.stdout + done.stderr
    assert "outside of any allocation (CUDA_ERROR_ILLEGAL_ADDRESS)" in done.stdout


def test_bits_of_scalar_parameters(launch, output):
    """Half-width and 8-bit floats are packed by hand on the way in."""
    text = """
@kernel
def k(h: Float16, b: BFloat16, res: Pointer[Float32, MutAnyOrigin]):
    res[unsafe_offset=0] = Float32(h)
    res[unsafe_offset=1] = Float32(b)
"""
    res = output(2)
    launch(ptxdsl.loads(text)["k"], 1, 1, 0.1, 0.1, res)
    assert res.read().tolist() == [0.0999755859375, 0.10009765625]
