"""ptxdsl.TensorMap on arrays of the device and of the host. What the 128 bytes mean is tested in tests/sim."""

import gc
import weakref

import numpy as np
import pytest
from played_driver import H200, DeviceArray

import ptxdsl
from ptxdsl import LaunchError, TensorMap
from ptxdsl.api.module import Module
from ptxdsl.cuda.arguments import Packer
from ptxdsl.cuda.host_arguments import HostPacker
from ptxdsl.cuda.host_copies import Copies
from ptxdsl.run.binding import MapOf
from ptxdsl.run.places import _map
from ptxdsl.signature import KernelSignature, ScalarParam, TensorMapParam
from ptxdsl.sim.copies.tensor_map_bytes import decode
from ptxdsl.source import Source

MAP = KernelSignature("k", (TensorMapParam("m"),))


def refusal(call):
    with pytest.raises(LaunchError) as caught:
        call()
    found = caught.value.diagnostics[0]
    return found.code, found.message


def test_what_it_shows_of_itself():
    made = TensorMap(np.zeros((4, 1000), np.float32), (4, 32), swizzle="128B")
    assert repr(made) == "<ptxdsl tensor map: f32, shape (4, 1000), box (4, 32), swizzle '128B'>"


@pytest.mark.parametrize(
    ("value", "got"),
    [
        (np.zeros(32, np.float32), "is a TensorMap; got an array (numpy.ndarray)"),
        (np.zeros((4, 100), np.uint8), "is a TensorMap of 128 bytes; got 400 bytes"),
        (np.zeros(16, np.float16)[::2], "is a TensorMap; got an array (numpy.ndarray)"),
        (7, "is a TensorMap; got int 7"),
    ],
)
def test_what_is_no_tensor_map(value, got):
    with pytest.raises(LaunchError) as caught:
        HostPacker(MAP, {}).bind([value])
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("E0904", f"argument 'm' of kernel 'k' {got}")
    assert found.help == "make one of the array: ptxdsl.TensorMap(array, box=…)"


def test_a_map_may_come_as_bytes_or_words():
    for value in bytes(128), bytearray(128), np.zeros(16, np.uint64):
        assert HostPacker(MAP, {}).bind([value]) == [bytes(128)]


@pytest.mark.parametrize(
    ("dtype", "typestr", "name"),
    [("float32", "<f4", "f32"), ("int32", "<i4", "s32"), ("uint8", "|u1", "u8"), ("float64", "<f8", "f64"),
     ("bool", "|b1", "u8")],
)  # fmt: skip
def test_a_map_on_the_device_has_the_arrays_address(dtype, typestr, name):
    array = DeviceArray(0x7F00_0000_1000, typestr, (64, 128))
    made = TensorMap(array, (8, 16), swizzle="64B" if dtype == "float32" else "none", l2_promotion="128B")
    said = decode(made.data)
    assert (said.data_type, said.address, said.dims, said.box) == (name, 0x7F00_0000_1000, (128, 64), (16, 8))
    assert said.strides == (128 * np.dtype(dtype).itemsize,)
    host = TensorMap(np.zeros((64, 128), dtype), (8, 16), swizzle=said.swizzle, l2_promotion="128B")
    assert host.encode(0x7F00_0000_1000) == made.data and host.data is None
    assert Packer(MAP, {}).leaves([made])[0] == [made.data]


def test_tensors(tensor):
    made = TensorMap(tensor(0x4000, "bfloat16", (64, 64)), (16, 64), swizzle="128B")
    said = decode(made.data)
    assert (said.data_type, said.strides, said.swizzle) == ("bf16", (128,), "128B")
    strided = DeviceArray(0x4000, "<f4", (16, 16), strides=(1024, 4))
    assert decode(TensorMap(strided, (4, 4)).data).strides == (1024,)
    part = TensorMap(DeviceArray(0x4000, "<u2", (4096,)), (8, 64), shape=(32, 128), strides=(256, 2), data_type="bf16")
    assert decode(part.data).dims == (128, 32)


@pytest.mark.parametrize(
    ("dtype", "bits"), [("bfloat16", "u2"), ("float8_e4m3fn", "u1"), ("float32", "f4"), ("int8", "i1")]
)
def test_the_command_makes_the_same_map_for_both_places(dtype, bits, array):
    """``ptxdsl run``: on the card it is that of the copy."""
    host, given = np.zeros((64, 64), bits), {"box": "8x16", "l2": "128B"}
    copy = array(0x7F00_0000_1000, f"<{bits}", (64, 64))
    on_host, on_card = (_map(MapOf(host, dtype, given), place) for place in (host, copy))
    assert on_host.data is None and on_card.data == on_host.encode(0x7F00_0000_1000)
    assert on_card.form is on_host.form


Array = DeviceArray


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TensorMap(Array(0x4004, "<f4", (16, 16)), (4, 4)), "the address 0x4004 is not a multiple of 16"),
        (lambda: TensorMap(Array(0x4000, "<f4", (16, 15)), (4, 4)), "stride 0 is 60 bytes; it must be a multiple"),
        (lambda: TensorMap(Array(0x4000, "<f4", (300, 16)), (257, 4)), "the box has 257 elements in dimension 1"),
        (lambda: TensorMap(Array(0x4000, "<f4", (16, 16)), (4,)), "has 2 box sizes, not 1"),
        (lambda: TensorMap(Array(0x4000, "<f4", (16, 16)), (4, 3)), "a row of the box has 12 bytes"),
        (lambda: TensorMap(Array(0x4000, "<c8", (16, 16)), (4, 4)), "has no element type of a tensor map"),
        (lambda: TensorMap(Array(0x4000, "<f4", (16, 16), (4, 64)), (4, 4)), "innermost dimension of a tensor map"),
        (lambda: TensorMap(Array(0x4000, ">f4", (16, 16)), (4, 4)), "its elements are big-endian (>f4)"),
        (lambda: TensorMap(np.zeros((16, 16), ">f4"), (4, 4)), "its elements are big-endian (>f4)"),
        (lambda: TensorMap(np.zeros((16, 16)), (4, 4.0)), "box=(4, 4.0) of a tensor map is not a sequence of integers"),
        (lambda: TensorMap(np.zeros((16, 16)), (4, 4), shape=(1e9, 4)), "of a tensor map is not a sequence of"),
        (lambda: TensorMap(np.zeros((16, 16)), (4, 4), "ab"), "element_strides='ab' of a tensor map is not a sequence"),
        (lambda: TensorMap([1, 2], (4, 4)), "a tensor map is made of an array, got list"),
        (lambda: TensorMap(None, (4, 4)), "a tensor map is made of an array, got NoneType"),
        (lambda: TensorMap(Array(0x4000, "<f4", (16, 16)), (4, 4), swizzle="256B"), "swizzle='256B' of a tensor map"),
        (lambda: TensorMap(Array(0x4000, "<i4", (16, 16)), (4, 4), fill="nan"), "s32 cannot be filled with NaN"),
    ],
)  # fmt: skip
def test_maps_that_cannot_be(call, message):
    code, found = refusal(call)
    assert code == "E0920" and message in found


def test_a_map_keeps_its_array_alive():
    for make in (lambda: np.zeros((16, 16), np.float32), lambda: Array(0x4000, "<f4", (16, 16))):
        array = make()
        known, made = weakref.ref(array), TensorMap(array, (4, 4))
        del array
        gc.collect()
        assert known() is not None
        del made
        gc.collect()
        assert known() is None


def test_a_map_lies_at_a_multiple_of_64_bytes():
    signature = KernelSignature("k", (ScalarParam("n", "int8"), TensorMapParam("m"), TensorMapParam("o")))
    data = bytes(range(128))
    for _ in range(20):
        packed = Packer(signature, {}).pack([1, data, data])
        assert [packed.pointers[i] % 64 for i in (1, 2)] == [0, 0]


def test_a_map_of_the_other_place():
    host = TensorMap(np.zeros((16, 16), np.float32), (4, 4))
    assert refusal(lambda: Packer(MAP, {}).leaves([host])) == (
        "E0905", "argument 'm' of kernel 'k' is a TensorMap of an array in host memory"
    )  # fmt: skip
    device = TensorMap(DeviceArray(0x4000, "<f4", (16, 16)), (4, 4))
    assert refusal(lambda: HostPacker(MAP, {}).bind([device])) == (
        "E0905", "argument 'm' of kernel 'k' is a TensorMap of an array in device memory, out of the simulator's reach"
    )  # fmt: skip
    assert HostPacker(MAP, {}).bind([host]) == [host]
    for packer in (Packer(MAP, {}).leaves, HostPacker(MAP, {}).bind):
        assert refusal(lambda: packer([3])) == ("E0904", "argument 'm' of kernel 'k' is a TensorMap; got int 3")  # noqa: B023


TEXT = """
@kernel
def k(m: TensorMap, n: Int32):
    pass
"""


def test_the_array_of_a_map_is_one_of_the_launch(driver, tensor):
    """It lies on the kernel's device, whichever way a launch goes; a launch that is waited for copies it."""
    module = Module(Source("k.pdsl", TEXT), driver=driver)
    driver.memory = {0x4000: bytes(1024)}
    here, there = (TensorMap(tensor(0x4000, shape=(16, 16), index=device), (4, 4)) for device in (0, 1))
    for _ in range(2):
        module.k[1, 32](here, 1)
        assert refusal(lambda: module.k[1, 32](there, 1)) == (
            "E0905", f"argument 'm' of kernel 'k' is on device 1, but the kernel would run on the current {H200}"
        )  # fmt: skip
    driver.launches, driver.endless = [], True
    with pytest.raises(ptxdsl.DeviceError) as caught:
        module.k[1, 32](here, 1, timeout=0.01)
    assert caught.value.replay().finished


def test_a_map_for_a_replay(driver):
    values = np.arange(256, dtype=np.float32)
    driver.memory = {0x4000: values.tobytes()}
    array = DeviceArray(0x4000, "<f4", (16, 16))
    made = TensorMap(array, (4, 4), swizzle="none", fill="nan")
    copies = Copies(driver, [ptxdsl.cuda.arrays.view(array)])
    again = copies.map_of(made)
    assert again.data is None and np.array_equal(again.array, values.reshape(16, 16))
    assert (again.description.box, again.description.fill) == ((4, 4), "nan")
    assert copies.map_of(made.data) is None  # bytes do not say where their array is
