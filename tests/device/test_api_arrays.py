"""Arrays of every library, tensor maps, streams."""

import ctypes

import numpy as np
import pytest

import ptxdsl
from ptxdsl.artifact import Compiled
from ptxdsl.cuda.driver import current_driver
from ptxdsl.cuda.launch import LoadedKernel
from ptxdsl.options import Options
from ptxdsl.signature import KernelSignature, TensorMapParam

pytestmark = pytest.mark.device

ADD = """
@kernel
def add[dtype: DType](src: Pointer[Scalar[dtype], ImmutAnyOrigin], res: Pointer[Scalar[dtype], MutAnyOrigin], n: Int32):
    var i = Int32(thread_idx.x)
    if i < n:
        res[unsafe_offset=i] = src[unsafe_offset=i] + Scalar[dtype](1)
"""


@pytest.fixture(scope="module")
def add():
    return ptxdsl.loads(ADD)["add"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64"])
def test_tensors_of_every_type(gpu, add, dtype):
    src = gpu.arange(64, device="cuda").to(getattr(gpu, dtype))
    for _ in range(2):
        res = gpu.zeros_like(src)
        add.specialize(dtype=src.dtype)[1, 64](src, res, 64)
        assert gpu.equal(res, src + 1)


def test_tensors_that_want_gradients_and_parameters(gpu, add):
    kernel = add.specialize(dtype="DType.float32")
    src = gpu.nn.Parameter(gpu.arange(64.0, device="cuda"))
    for _ in range(2):
        res = gpu.zeros(64, device="cuda")
        kernel[1, 64](src, res, 64)
        assert gpu.equal(res, src.detach() + 1)


def test_what_is_refused_after_a_launch_was_accepted(gpu, add):
    """The generated code asks all of this again."""
    kernel = add.specialize(dtype="DType.float32")
    src, res = gpu.zeros(64, device="cuda"), gpu.zeros(64, device="cuda")
    kernel[1, 64](src, res, 64)
    for wrong, code in (
        (src.cpu(), "E0905"),
        (src.double(), "E0904"),
        (gpu.zeros(128, device="cuda")[::2], "E0906"),
        (None, "E0904"),
    ):
        with pytest.raises(ptxdsl.LaunchError) as caught:
            kernel[1, 64](wrong, res, 64)
        assert caught.value.diagnostics[0].code == code
    for wrong, code in ((64.0, "E0904"), (True, "E0904"), (2**31, "E0907")):
        with pytest.raises(ptxdsl.LaunchError) as caught:
            kernel[1, 64](src, res, wrong)
        assert caught.value.diagnostics[0].code == code
    kernel[1, 64](src, res, np.int64(64))


def test_cupy(gpu, add):
    cupy = pytest.importorskip("cupy")
    kernel = add.specialize(dtype="DType.float32")
    src = cupy.arange(64, dtype=cupy.float32)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        for _ in range(2):
            res = cupy.zeros_like(src)
            kernel[1, 64](src, res, 64)
            assert cupy.array_equal(res, src + 1)
    res = cupy.zeros_like(src)
    kernel[1, 64](src, res, 64, stream=stream)
    stream.synchronize()
    assert cupy.array_equal(res, src + 1)
    with pytest.raises(ptxdsl.LaunchError, match="not contiguous"):
        kernel[1, 32](src[::2], res, 32)


def test_numba(gpu, add):
    numba_cuda = pytest.importorskip("numba.cuda")
    values = np.arange(64, dtype=np.float32)
    src, res = numba_cuda.to_device(values), numba_cuda.device_array(64, np.float32)
    add.specialize(dtype="DType.float32")[1, 64](src, res, 64)
    gpu.cuda.synchronize()
    assert np.array_equal(res.copy_to_host(), values + 1)


def test_jax(gpu, add, monkeypatch):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = pytest.importorskip("jax")
    try:
        src = jax.numpy.arange(64, dtype=jax.numpy.float32) * 1.0
        if src.device.platform != "gpu":
            pytest.skip("JAX has no GPU here")
    except RuntimeError as problem:
        pytest.skip(f"JAX does not work here: {problem}")
    kernel = add.specialize(dtype="DType.float32")
    res = gpu.zeros(64, device="cuda")
    kernel[1, 64](src, res, 64)
    assert res.tolist() == [i + 1 for i in range(64)]
    out = jax.numpy.zeros(64, dtype=jax.numpy.float32) * 1.0
    with pytest.raises(ptxdsl.LaunchError, match="is a JAX array, which is immutable"):
        kernel[1, 64](src, out, 64)
    kernel[1, 64](src, ptxdsl.donate(out), 64)
    assert np.array_equal(np.asarray(out.copy()), np.arange(64) + 1)
    half = jax.numpy.ones(64, dtype=jax.numpy.bfloat16) * 1
    res = gpu.zeros(64, dtype=gpu.bfloat16, device="cuda")
    add.specialize(dtype="DType.bfloat16")[1, 64](half, res, 64)
    assert (res == 2).all()


def test_an_object_with_dlpack_alone(gpu, add):
    class Wrapped:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self, **keywords):
            return self.tensor.__dlpack__(**keywords)

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

    src, res = gpu.arange(64.0, device="cuda"), gpu.zeros(64, device="cuda")
    gpu.cuda.synchronize()
    add.specialize(dtype="DType.float32")[1, 64](Wrapped(src), Wrapped(res), 64)
    gpu.cuda.synchronize()
    assert gpu.equal(res, src + 1)


def test_arrays_without_another_library(gpu, add):
    values = np.arange(64, dtype=np.float32)
    src, res = ptxdsl.to_device(values), ptxdsl.to_device(np.zeros(64, np.float32))
    for _ in range(2):
        add.specialize(dtype="DType.float32")[1, 64](src, res, 64)
        assert np.array_equal(res.to_host(), values + 1)
    bits = ptxdsl.to_device(np.full(64, 0x3F80, np.uint16), "bfloat16")
    out = ptxdsl.to_device(np.zeros(64, np.uint16), "bfloat16")
    add.specialize(dtype="DType.bfloat16")[1, 64](bits, out, 64)
    assert (out.to_host() == 0x4000).all()


def test_streams(gpu, add):
    kernel = add.specialize(dtype="DType.float32")
    src = gpu.arange(64.0, device="cuda")

    class Handle:
        def __init__(self, number):
            self.number = number

        def __cuda_stream__(self):
            return 0, self.number

    side = gpu.cuda.Stream()
    for given in (side, side.cuda_stream, Handle(side.cuda_stream)):
        res = gpu.zeros(64, device="cuda")
        gpu.cuda.synchronize()
        with gpu.cuda.stream(side):
            gpu.cuda._sleep(20_000_000)
        kernel[1, 64](src, res, 64, stream=given)
        done = side.record_event()
        assert not done.query()  # behind the sleep
        side.synchronize()
        assert gpu.equal(res, src + 1)


# ---------------------------------------------------------------------------------------------------------- tensor maps

ENCODED = [
    ((64, 128), "float32", (8, 32), {}),
    ((64, 128), "bfloat16", (16, 64), {"swizzle": "128B"}),
    ((64, 128), "uint8", (16, 64), {"swizzle": "64B", "l2_promotion": "128B"}),
    ((4, 64, 128), "float16", (2, 16, 16), {"swizzle": "32B", "fill": "nan", "l2_promotion": "256B"}),
    ((2, 3, 4, 64, 32), "int32", (1, 2, 2, 16, 8), {"element_strides": (1, 1, 2, 1, 1)}),
    ((32,), "float64", (16,), {}),
]


@pytest.mark.parametrize(("shape", "dtype", "box", "options"), ENCODED)
def test_the_128_bytes_are_the_drivers(gpu, shape, dtype, box, options):
    """cuTensorMapEncodeTiled, whose parameters go from the innermost dimension."""
    tensor = gpu.zeros(shape, dtype=getattr(gpu, dtype), device="cuda")
    made = ptxdsl.TensorMap(tensor, box, **options)
    rank, size = len(shape), tensor.element_size()
    kinds = {"uint8": 0, "int32": 3, "float16": 6, "float32": 7, "float64": 8, "bfloat16": 9}
    raw = ctypes.create_string_buffer(192)
    where = ctypes.addressof(raw) + -ctypes.addressof(raw) % 64
    dims = (ctypes.c_uint64 * rank)(*reversed(shape))
    strides = (ctypes.c_uint64 * max(rank - 1, 1))(*(s * size for s in reversed(tensor.stride()[:-1])))
    boxes = (ctypes.c_uint32 * rank)(*reversed(box))
    steps = (ctypes.c_uint32 * rank)(*reversed(options.get("element_strides", (1,) * rank)))
    status = ctypes.CDLL("libcuda.so.1").cuTensorMapEncodeTiled(
        ctypes.c_void_p(where), kinds[dtype], rank, ctypes.c_void_p(tensor.data_ptr()), dims, strides, boxes, steps, 0,
        ("none", "32B", "64B", "128B").index(options.get("swizzle", "none")),
        ("none", "64B", "128B", "256B").index(options.get("l2_promotion", "none")),
        ("zero", "nan").index(options.get("fill", "zero")),
    )  # fmt: skip
    assert status == 0
    assert made.data == ctypes.string_at(where, 128)


COPY = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry copy(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128])
{
.reg .b32 bar, s; .reg .b64 m; .reg .pred p;
.shared .align 8 .b64 barrier;
.shared .align 1024 .b8 tile[4096];
mov.u32 bar, barrier; mov.u32 s, tile;
mbarrier.init.shared::cta.b64 [bar], 1;
fence.mbarrier_init.release.cluster;
fence.proxy.async;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 4096;
mov.u64 m, a; cvta.param.u64 m, m;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [s], [m, {32, 16}], [bar];
W: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0; @!p bra W;
mov.u64 m, b; cvta.param.u64 m, m;
cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [m, {0, 0}], [s];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
ret;
}
"""


@pytest.fixture
def copy(gpu):
    driver = current_driver()
    signature = KernelSignature("copy", (TensorMapParam("a"), TensorMapParam("b")))
    kernel = LoadedKernel(
        driver, driver.context(None)[1], Compiled({"copy": signature}, COPY, (), Options("sm_90a"), ""), signature, {}
    )
    return lambda maps: kernel.launch((1, 1, 1), (1, 1, 1), maps, None, None)


def test_a_tile_is_copied_by_tensor_maps(gpu, copy):
    src = gpu.arange(64 * 128, device="cuda").to(gpu.float32).reshape(64, 128)
    for _ in range(2):
        res = gpu.zeros(32, 32, device="cuda")
        copy([ptxdsl.TensorMap(t, (32, 32)) for t in (src, res)])
        gpu.cuda.synchronize()
        assert gpu.equal(res, src[16:48, 32:64])


def test_tensor_maps_alone_go_to_the_current_stream(gpu, copy):
    """What the kernel copies is there late, and on that stream."""
    values = gpu.arange(64 * 128, device="cuda").to(gpu.float32).reshape(64, 128)
    src, res = gpu.zeros_like(values), gpu.zeros(32, 32, device="cuda")
    maps = [ptxdsl.TensorMap(t, (32, 32)) for t in (src, res)]
    side = gpu.cuda.Stream()
    for _ in range(2):
        src.zero_()
        gpu.cuda.synchronize()
        with gpu.cuda.stream(side):
            gpu.cuda._sleep(100_000_000)  # cycles, a twentieth of a second
            src.copy_(values)
            copy(maps)
        gpu.cuda.synchronize()
        assert gpu.equal(res, values[16:48, 32:64])
