"""The driver's library through ctypes, against one that cuda.h has checked (fake_cuda/libcuda.c)."""

import os
import subprocess
import sys
import threading
from array import array
from pathlib import Path

import numpy as np
import pytest

import ptxdsl
from ptxdsl.api.module import Module
from ptxdsl.cuda import driver as cuda_driver
from ptxdsl.cuda.driver import CudaDriver
from ptxdsl.cuda.errors import DriverError
from ptxdsl.cuda.library import Library
from ptxdsl.source import Source

TEXT = """
@kernel
def add(src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], n: Int64):
    res[unsafe_offset=0] = src[unsafe_offset=0]
"""


@pytest.fixture
def kernel(fake):
    return Module(Source("add.pdsl", TEXT))["add"]


@pytest.fixture
def arrays(fake):
    return [ptxdsl.to_device(np.arange(8, dtype=np.float32)) for _ in range(2)]


def test_every_function_is_there(built):
    found = Library(str(built))
    assert found.error_name(700) == "CUDA_ERROR_ILLEGAL_ADDRESS"
    assert found.error_name(12345) == "CUresult 12345"


def test_a_device_describes_itself(fake):
    driver = CudaDriver(Library())
    driver.initialise()
    assert driver.current_device() is None
    context, device = driver.context(None)
    assert (context, driver.current_device()) == (0xC0, 0)
    assert (device.name, device.capability, device.max_block) == ("Fake", (9, 0), (1024, 1023, 64))
    assert (device.max_grid, device.max_shared) == ((2**31 - 1, 65535, 65534), 232448)
    assert (device.multiprocessors, device.max_warps, driver.version()) == (132, 64, 13000)


def test_a_thread_without_a_context_gets_that_of_its_arrays(fake):
    driver = CudaDriver(Library())
    driver.initialise()
    assert driver.context(3)[1].ordinal == 3
    found = []
    thread = threading.Thread(target=lambda: found.append(driver.context(None)[1].ordinal))
    thread.start()
    thread.join()
    assert found == [0]


@pytest.mark.parametrize("times", [1, 2, 3])
def test_what_a_launch_hands_over(kernel, arrays, fake, times):
    """The first goes the general way, the others the quick one."""
    fake.parameter_count = 3
    src, res = arrays
    for _ in range(times):
        kernel[(3, 2), 64](src, res, -5, smem=60000)
    assert (fake.launches, fake.loads) == (times, 1)
    assert (list(fake.grid), list(fake.block), fake.shared_bytes) == ([3, 2, 1], [64, 1, 1], 60000)
    assert list(fake.parameters)[:3] == [src.address, res.address, 2**64 - 5]
    assert (fake.stream, fake.attribute_count, fake.shared) == (None, 0, 60000)


def test_attributes(kernel, arrays, fake):
    kernel[32, 64](*arrays, 1, cluster=16, cooperative=True, pdl=True, stream=0x51)
    assert fake.large_clusters == 1
    assert list(fake.attribute_ids)[: fake.attribute_count] == [4, 2, 6]
    assert fake.stream == 0x51


def test_occupancy(kernel, fake):
    found = kernel.occupancy(128, smem=1000)
    assert (found.blocks, found.warps, found.max_warps, found.fraction) == (16, 64, 64, 1.0)
    assert (found.registers, found.limit, found.shared, found.clusters) == (72, 896, 2024, None)
    assert kernel.occupancy(512, cluster=4).clusters == 16


def test_registers_are_named_when_a_block_is_too_large(kernel, arrays):
    with pytest.raises(ptxdsl.LaunchError, match="needs 72 registers per thread, so at most 896 threads fit"):
        kernel[1, 1024](*arrays, 1)


def test_a_prepared_launch(kernel, arrays, fake):
    fake.parameter_count = 3
    src, res = arrays
    go = kernel.prepare(2, 32, src, res, 7, stream=0x99)
    for _ in range(3):
        go()
    assert (fake.launches, fake.stream, list(fake.parameters)[:3]) == (3, 0x99, [src.address, res.address, 7])
    go.bind(res, src, 8)()
    assert list(fake.parameters)[:3] == [res.address, src.address, 8]


def test_threads_without_a_context_launch(kernel, arrays, fake):
    """The fast path and a prepared launch get one from the driver's refusal."""
    kernel[1, 32](*arrays, 1)
    go = kernel.prepare(1, 32, *arrays, 1)
    go()

    def work():
        kernel[1, 32](*arrays, 1)
        kernel[1, 32](*arrays, 1)
        go()

    for target in (work, go):
        thread = threading.Thread(target=target)
        thread.start()
        thread.join()
    assert fake.launches == 6


def test_what_the_compiler_of_the_driver_says(fake, driver):
    own = CudaDriver(Library())
    own.initialise()
    own.context(None)
    with pytest.raises(DriverError) as caught:
        own.load(b".version 8.0\nbad line\n\0", "k")
    assert (caught.value.result, caught.value.log) == (
        "CUDA_ERROR_INVALID_PTX",
        "ptxas application ptx input, line 3; error   : Parsing error",
    )
    with pytest.raises(DriverError, match="CUDA_ERROR_NOT_FOUND"):
        own.load(b".visible .entry other\0", "kernel")
    assert fake.loads == fake.unloads == 1
    assert fake.capture_mode == 0  # as it was


def test_a_fault_is_raised_by_the_quick_way_too(kernel, arrays, fake):
    kernel[1, 32](*arrays, 1)
    fake.fails = 700
    for call in (lambda: kernel[1, 32](*arrays, 1), kernel.prepare(1, 32, *arrays, 1)):
        with pytest.raises(ptxdsl.DeviceError, match="outside of any allocation") as caught:
            call()
        assert "kernel 'add' (grid (1, 1, 1), block (32, 1, 1)) was not started" in str(caught.value)


def test_arrays_of_our_own(fake):
    values = np.arange(12, dtype=np.int32).reshape(3, 4)
    array = ptxdsl.to_device(values[:, ::2])
    assert (array.dtype, array.shape, array.nbytes) == ("int32", (3, 2), 24)
    assert np.array_equal(array.to_host(), values[:, ::2])
    assert ptxdsl.to_device(np.zeros(0, np.float32)).to_host().shape == (0,)
    driver = cuda_driver.current_driver()
    assert driver.pointer_device(array.address) == 0
    address = array.address
    del array
    assert driver.pointer_device(address) is None  # freed with the object


def test_an_array_in_a_thread_without_a_context(fake):
    """It can be read there, and its memory is given back where the last reference goes."""
    held = [ptxdsl.to_device(np.arange(4, dtype=np.int32))]
    address, read = held[0].address, []

    for work in (lambda: read.extend(held[0].to_host()), held.pop):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert read == [0, 1, 2, 3]
    assert cuda_driver.current_driver().pointer_device(address) is None


def test_an_array_that_goes_leaves_the_thread_as_it_is(fake):
    """A collector may run in any thread, which launches where it did before."""
    held = [ptxdsl.to_device(np.arange(4, dtype=np.int32))]
    address, devices = held[0].address, []

    def work():
        held.pop()
        devices.append(cuda_driver.current_driver().current_device())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert cuda_driver.current_driver().pointer_device(address) is None
    assert devices == [None]


def test_buffers(fake):
    for buffer, dtype, values in (
        (array("f", [1, 2]), "float32", [1, 2]),
        (array("b", [-1]), "int8", [-1]),
        (array("Q", [2**63]), "uint64", [2**63]),
        (b"ab", "uint8", [97, 98]),
        (memoryview(array("d", [1, 2, 3, 4])).cast("B").cast("d", (2, 2)), "float64", [[1, 2], [3, 4]]),
        (b"", "uint8", []),
    ):
        made = ptxdsl.to_device(buffer)
        assert made.dtype == dtype and made.to_host().tolist() == values
    assert ptxdsl.to_device(array("H", [0x3F80]), "bfloat16").dtype == "bfloat16"


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ("CUDA_ERROR_ILLEGAL_ADDRESS", "a kernel failed on the device: a kernel read or wrote memory outside"),
        ("CUDA_ERROR_INVALID_VALUE", "the device cannot do this: the driver refused a value"),
    ],
)
def test_an_array_that_cannot_be_read(fake, monkeypatch, result, words):
    array = ptxdsl.to_device(np.zeros(4, np.int32))

    def fails(self, *given):
        raise DriverError("cuMemcpyDtoH", result)

    monkeypatch.setattr(CudaDriver, "copy_out", fails)
    with pytest.raises(ptxdsl.LaunchError, match=words) as caught:
        array.to_host()
    assert caught.value.diagnostics[0].code == "E0912"
    assert isinstance(caught.value, ptxdsl.DeviceError) == (result == "CUDA_ERROR_ILLEGAL_ADDRESS")


def test_a_launch_of_buffers_does_without_numpy(built, tmp_path):
    code = f"""
import sys, array, ptxdsl
from ptxdsl.cuda import library
library.NAMES = {{sys.platform: {str(built)!r}}}
k = ptxdsl.loads({TEXT!r}, "add.pdsl")["add"]
a = ptxdsl.to_device(array.array("f", [1, 2]))
for _ in range(3):
    k[1, 32](a, a, 1)
print("numpy" in sys.modules, "llvmlite" in sys.modules)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(ptxdsl.__file__).parents[1])}
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.split()[0] == "False"


@pytest.mark.parametrize(
    ("value", "dtype", "words"),
    [
        ([1, 2], None, "takes an array of NumPy, a CPU tensor or a contiguous buffer, not list"),
        (memoryview(b"abcd")[::2], None, "not memoryview"),
        (array("f", [1]), "float16", "elements of float32 are no float16"),
        (array("f", [1]), "float31", "there is no dtype 'float31'"),
        (np.float32(1), None, "not float32"),
        (np.zeros(2, np.uint8), "bfloat16", "elements of uint8 are no bfloat16"),
        (np.zeros(2, ">f4"), None, "its elements are big-endian"),
    ],
)
def test_what_is_no_array_of_the_host(fake, value, dtype, words):
    with pytest.raises(TypeError, match=words):
        ptxdsl.to_device(value, dtype)


def test_a_fork_is_told(kernel, arrays, fake, monkeypatch):
    kernel[1, 32](*arrays, 1)
    go = kernel.prepare(1, 32, *arrays, 1)
    here = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here + 1)
    fake.fails = 3  # what the driver gives there
    for call in (lambda: kernel[1, 32](*arrays, 1), lambda: kernel[2, 32](*arrays, 1), go, cuda_driver.current_driver):
        with pytest.raises(ptxdsl.LaunchError) as caught:
            call()
        assert caught.value.diagnostics[0].code == "E0914"
        assert "spawn" in caught.value.diagnostics[0].help


def test_launches_leave_nothing_behind(kernel, arrays, fake):
    """Neither Python's objects nor the driver's events."""
    import tracemalloc

    go = kernel.prepare(1, 32, *arrays, 1)

    def work(count):
        for i in range(count):
            kernel[1, 32](*arrays, i)
            go()

    work(500)
    tracemalloc.start()
    work(100)
    before = tracemalloc.get_traced_memory()[0]
    work(5000)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 2000, grown
    for _ in range(5):
        kernel[1, 32](*arrays, 1, timeout=5)
    assert fake.events == 0
