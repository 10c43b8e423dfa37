"""From kernel[grid, block](…) to the driver's call, and every failure's words."""

import struct
import types
from dataclasses import replace

import pytest

from ptxdsl import LaunchError
from ptxdsl.artifact import Compiled
from ptxdsl.cuda.launch import LoadedKernel
from ptxdsl.cuda.shape import dimensions
from ptxdsl.options import Options
from ptxdsl.signature import KernelSignature, PointerParam, ScalarParam
from ptxdsl.source import Source, Span

SIGNATURE = KernelSignature(
    "scale", (PointerParam("p", "float32", 4, 4, True), ScalarParam("n", "int32")), shared_bytes=0
)
TEXT = Source("scale.pdsl", "def scale(p: Pointer[Float32], n: Int32):\n    p[0] = 1\n")
SPANS = {"n": Span(TEXT, 31, 39)}
PTX = ".version 8.0\n.target sm_90a\nbad line\n"


def loaded(driver, signature=SIGNATURE):
    made = Compiled({signature.name: signature}, PTX, (None, None, Span(TEXT, 46, 54)), Options(), "")
    return LoadedKernel(driver, driver.device, made, signature, SPANS)


def refusal(call):
    with pytest.raises(LaunchError) as caught:
        call()
    return caught.value.diagnostics[0]


def start(driver, signature=SIGNATURE, grid=(1, 1, 1), block=(32, 1, 1), smem=None, stream=0, arguments=None):
    given = [types.SimpleNamespace(), 1] if arguments is None else arguments
    loaded(driver, signature).launch(grid, block, given, smem, stream)


def test_a_launch_hands_the_driver_shape_stream_and_parameters(driver, tensor):
    driver.sizes = (8, 4)
    start(driver, grid=(3, 2, 1), block=(64, 1, 1), stream=None, arguments=[tensor(0x9000), 7])
    assert driver.launches == [
        {"grid": (3, 2, 1), "block": (64, 1, 1), "shared": 0, "stream": 0x77,
         "data": [struct.pack("<Q", 0x9000), struct.pack("<i", 7)]}
    ]  # fmt: skip
    assert driver.images == [PTX.encode() + b"\0"]


@pytest.mark.parametrize(
    ("stream", "handle"),
    [
        (5, 5),
        (types.SimpleNamespace(cuda_stream=6), 6),
        (types.SimpleNamespace(ptr=7), 7),
        (types.SimpleNamespace(__cuda_stream__=lambda: (0, 8)), 8),
    ],
)
def test_a_stream_given_is_the_stream_used(driver, tensor, stream, handle):
    start(driver, stream=stream, arguments=[tensor(0x9000), 7])
    assert driver.launches[0]["stream"] == handle


def test_other_libraries_arrays_go_to_the_default_stream(driver, array):
    driver.owners[0x9000] = 0
    start(driver, stream=None, arguments=[array(0x9000), 7])
    assert driver.launches[0]["stream"] == 0


def test_what_is_no_stream(driver, tensor):
    found = refusal(lambda: start(driver, stream="fast", arguments=[tensor(0x9000), 7]))
    assert found.code == "E0910"
    assert found.message.endswith("got str")


def test_arrays_elsewhere_never_reach_the_driver(driver, tensor, array):
    found = refusal(lambda: start(driver, arguments=[tensor(0x9000, index=1), 7]))
    assert (found.code, found.message) == (
        "E0905",
        "argument 'p' of kernel 'scale' is on device 1, but the kernel would run on the current device 0 (NVIDIA H200, "
        "compute capability 9.0)",
    )
    found = refusal(lambda: start(driver, arguments=[array(0x9000), 7]))
    assert found.message == "argument 'p' of kernel 'scale' is not in device memory"
    assert driver.launches == []


def test_wrong_arguments_point_at_the_declaration(driver, tensor):
    found = refusal(lambda: start(driver, arguments=[tensor(0x9000), 2**40]))
    assert (found.code, str(found.span), found.span.text) == ("E0907", "scale.pdsl:1:32", "n: Int32")
    assert "n: Int32" in str(LaunchError(found))


@pytest.mark.parametrize(
    ("value", "expected"), [(5, (5, 1, 1)), ((5,), (5, 1, 1)), ((2, 3), (2, 3, 1)), ([2, 3, 4], (2, 3, 4))]
)
def test_dimensions(value, expected):
    assert dimensions(value, "grid") == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "grid.x is 0; it must be at least 1"),
        ((4, -1), "grid.y is -1; it must be at least 1"),
        ((1, 1, 1, 1), "grid has 4 dimensions; 1 to 3 are possible"),
        ((), "grid has 0 dimensions; 1 to 3 are possible"),
        (2.5, "grid.x must be an integer, got float 2.5"),
        (float("nan"), "grid.x must be an integer, got float nan"),
        (float("inf"), "grid.x must be an integer, got float inf"),
        (True, "grid.x must be an integer, got bool True"),
        pytest.param(1 << 20000, "grid.x has 20001 bits; no launch is so large", id="huge"),
        ("4", "grid.x must be an integer, got str '4'"),
    ],
)
def test_wrong_dimensions(value, message):
    found = refusal(lambda: dimensions(value, "grid"))
    assert (found.code, found.message) == ("E0908", message)


DEVICE = "device 0 (NVIDIA H200, compute capability 9.0)"


@pytest.mark.parametrize(
    ("changes", "grid", "block", "message"),
    [
        ({}, (1, 1, 1), (2048, 1, 1), f"block.x is 2048; {DEVICE} allows at most 1024"),
        ({}, (1, 1, 1), (1, 1, 65), f"block.z is 65; {DEVICE} allows at most 64"),
        ({}, (1, 65536, 1), (1, 1, 1), f"grid.y is 65536; {DEVICE} allows at most 65535"),
        ({}, (1, 1, 1), (64, 32, 1), f"block (64, 32, 1) has 2048 threads; {DEVICE} allows at most 1024"),
        (
            {"threads": (64, 1, 1)},
            (1, 1, 1),
            (128, 1, 1),
            "kernel 'scale' runs with exactly (64, 1, 1) threads per block; block is (128, 1, 1)",
        ),
        (
            {"max_threads": (64, 1, 1)},
            (1, 1, 1),
            (65, 1, 1),
            "kernel 'scale' is declared for at most 64 threads per block; block (65, 1, 1) has 65",
        ),
        (
            {"thread_count": 64},
            (1, 1, 1),
            (8, 4, 1),
            "operations of kernel 'scale' are of blocks of 64 threads (block_size=64); block (8, 4, 1) has 32",
        ),
        (
            {"cluster": (2, 1, 1)},
            (3, 1, 1),
            (1, 1, 1),
            "grid.x is 3, not a multiple of the cluster's 2 (kernel 'scale')",
        ),
    ],
)
def test_shapes_that_cannot_run_say_which_number_is_too_large(driver, tensor, changes, grid, block, message):
    found = refusal(lambda: start(driver, replace(SIGNATURE, **changes), grid, block, arguments=[tensor(0), 1]))
    assert (found.code, found.message) == ("E0908", message)
    assert driver.launches == []


def test_registers_bound_the_block(driver, tensor):
    driver.function = replace(driver.function, max_threads=384, registers=168)
    found = refusal(lambda: start(driver, block=(512, 1, 1), arguments=[tensor(0), 1]))
    assert found.message == (
        "block (512, 1, 1) has 512 threads; kernel 'scale' needs 168 registers per thread, so at most 384 threads fit"
    )


@pytest.mark.parametrize(("smem", "allowed"), [(49151, []), (49152, []), (49153, [49153]), (227 * 1024, [227 * 1024])])
def test_shared_memory_above_48_kib_is_opted_into(driver, tensor, smem, allowed):
    start(driver, smem=smem, arguments=[tensor(0), 1])
    assert (driver.allowed, driver.launches[0]["shared"]) == (allowed, smem)


def test_a_smaller_launch_never_lowers_the_limit(driver, tensor):
    kernel = loaded(driver)
    for size in (60000, 100, 90000, 60000):
        kernel.launch((1, 1, 1), (1, 1, 1), [tensor(0), 1], size, 0)
    assert driver.allowed == [60000, 90000]


def test_too_much_shared_memory_counts_the_static_part(driver, tensor):
    driver.function = replace(driver.function, shared=1024)
    found = refusal(lambda: start(driver, smem=227 * 1024, arguments=[tensor(0), 1]))
    assert (found.code, found.message) == (
        "E0909",
        f"smem is 232448 bytes; kernel 'scale' needs that and 1024 bytes of its own, and {DEVICE} has 232448 bytes a "
        "block: at most 231424 can be given",
    )


def test_dynamic_shared_memory_must_be_given_where_it_is_used(driver, tensor):
    wants = replace(SIGNATURE, dynamic_shared=True)
    assert refusal(lambda: start(driver, wants, arguments=[tensor(0), 1])).code == "E0909"
    assert refusal(lambda: start(driver, smem=-1, arguments=[tensor(0), 1])).message == (
        "smem is -1; it must not be negative"
    )
    assert refusal(lambda: start(driver, smem=1.5, arguments=[tensor(0), 1])).code == "E0909"


def test_dynamic_shared_memory_that_the_kernel_has_counted_need_not_be_given(driver, tensor):
    counts = replace(SIGNATURE, dynamic_shared=True, dynamic_bytes=50000)
    for smem, shared in (None, 50000), (50000, 50000), (60000, 60000):
        start(driver, counts, smem=smem, arguments=[tensor(0), 1])
        assert driver.launches[-1]["shared"] == shared
    found = refusal(lambda: start(driver, counts, smem=49999, arguments=[tensor(0), 1]))
    assert (found.code, found.message, found.help) == (
        "E0909",
        "smem is 49999 bytes; kernel 'scale' uses 50000 bytes of dynamic shared memory",
        "leave smem out, and the launch gives it 50000 bytes",
    )


def test_a_failed_launch_names_kernel_shape_and_reason(driver, tensor):
    driver.fails["launch"] = ("CUDA_ERROR_ILLEGAL_ADDRESS", "")
    found = refusal(lambda: start(driver, smem=64, arguments=[tensor(0), 1]))
    assert (found.code, found.message) == (
        "E0912",
        "kernel 'scale' (grid (1, 1, 1), block (32, 1, 1), 64 bytes of dynamic shared memory) was not started: a "
        "kernel read or wrote memory outside of any allocation (CUDA_ERROR_ILLEGAL_ADDRESS)",
    )
    driver.fails["launch"] = ("CUDA_ERROR_STRANGE", "")
    assert refusal(lambda: start(driver, arguments=[tensor(0), 1])).message.endswith(
        "cuLaunchKernelEx returned CUDA_ERROR_STRANGE"
    )


def test_code_that_the_driver_rejects_is_shown_at_the_kernels_line(driver):
    driver.fails["load"] = ("CUDA_ERROR_INVALID_PTX", "ptxas application ptx input, line 3; error   : Parsing error")
    with pytest.raises(LaunchError) as caught:
        loaded(driver)
    first, second = caught.value.diagnostics
    assert (first.code, str(first.span)) == ("E0911", "scale.pdsl:2:5")
    assert second.message == "ptxas application ptx input, line 3; error   : Parsing error"


def test_ptx_newer_than_the_driver_names_both_versions(driver):
    driver.fails["load"] = ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "")
    found = refusal(lambda: loaded(driver))
    assert found.help == (
        "the driver knows CUDA 13.0, the kernel is PTX 8.0, the lowest that will do: update the driver"
    )
