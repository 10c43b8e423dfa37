"""Arguments against signatures: what is packed, and what every wrong one is told."""

import ctypes
import struct
from collections import namedtuple

import numpy as np
import pytest

from ptxdsl import LaunchError
from ptxdsl.cuda.arguments import Packer
from ptxdsl.signature import KernelSignature, PointerParam, ScalarParam, StructParam, TensorMapParam


def packer(*params):
    return Packer(KernelSignature("k", params), {})


def scalar(dtype):
    return ScalarParam("n", dtype)


def pointer(dtype="float32", size=4, align=4, mutable=True):
    return PointerParam("p", dtype, size, align, mutable)


def bytes_of(param, value):
    """What the driver would read for a kernel's only parameter."""
    maker = packer(param)
    packed = maker.pack([value])
    return ctypes.string_at(packed.pointers[0], maker.size)


def refusal(param, value):
    with pytest.raises(LaunchError) as caught:
        packer(param).pack([value])
    (found,) = caught.value.diagnostics
    return found.code, found.message


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("int32", -2, struct.pack("<i", -2)),
        ("int", 2**40, struct.pack("<q", 2**40)),
        ("uint64", 2**64 - 1, b"\xff" * 8),
        ("int8", -128, b"\x80"),
        ("int32", np.int64(7), struct.pack("<i", 7)),
        ("uint8", np.uint32(255), b"\xff"),
        ("bool", True, b"\x01"),
        ("bool", np.bool_(False), b"\x00"),
        ("float32", 0.1, struct.pack("<f", 0.1)),
        ("float32", 3, struct.pack("<f", 3.0)),
        ("float64", np.float32(0.5), struct.pack("<d", 0.5)),
        ("float32", float("inf"), struct.pack("<f", float("inf"))),
        ("float16", 65504.0, np.float16(65504).tobytes()),
        ("float16", 2.0**-25, b"\x00\x00"),  # a tie goes to the even neighbour, 0
        ("float16", 3 * 2.0**-25, b"\x02\x00"),
        ("bfloat16", 1.0 + 2.0**-8, b"\x80\x3f"),  # a tie again
        ("bfloat16", 1.0 + 3 * 2.0**-8, b"\x82\x3f"),
        ("bfloat16", -0.0, b"\x00\x80"),
        ("float8_e4m3fn", 448.0, b"\x7e"),
        ("float8_e4m3fn", float("nan"), b"\x7f"),
        ("float8_e4m3fn", 2.0**-9, b"\x01"),
        ("float8_e5m2", 57344.0, b"\x7b"),
        ("float8_e5m2", float("-inf"), b"\xfc"),
    ],
)
def test_scalars_are_packed_at_their_declared_width(dtype, value, expected):
    assert bytes_of(scalar(dtype), value) == expected


def test_half_precision_agrees_with_numpy_everywhere():
    values = np.random.default_rng(1).uniform(-1, 1, 2000) * 2.0 ** np.random.default_rng(2).integers(-28, 15, 2000)
    for value in values:
        assert bytes_of(scalar("float16"), float(value)) == np.float16(value).tobytes()


@pytest.mark.parametrize(
    ("dtype", "value", "code", "message"),
    [
        (
            "int32",
            2**31,
            "E0907",
            "does not fit Int32: 2147483648 is outside of int32's range -2147483648 … 2147483647",
        ),
        ("uint32", -1, "E0907", "does not fit UInt32: -1 is outside of uint32's range 0 … 4294967295"),
        ("int32", 2.0, "E0904", "is an Int32; got float 2.0"),
        ("int32", True, "E0904", "is an Int32; got bool True"),
        ("int32", None, "E0904", "is an Int32; got None"),
        ("int32", "3", "E0904", "is an Int32; got str '3'"),
        ("float32", "1.0", "E0904", "is a Float32; got str '1.0'"),
        ("float32", 1e39, "E0907", "does not fit Float32: 1e+39 is too large for float32"),
        ("float16", 65520.0, "E0907", "does not fit Float16: 65520.0 is too large for float16"),
        ("float8_e4m3fn", float("inf"), "E0907", "does not fit Float8_e4m3fn: float8_e4m3fn has no infinity"),
        ("bool", 1, "E0904", "is a Bool; got int 1"),
        ("float32", 1j, "E0904", "is a Float32; got complex 1j"),
        ("int32", np.zeros(1, np.int32), "E0904", "is an Int32; got numpy.ndarray"),
    ],
)
def test_wrong_scalars_say_what_was_wanted_and_given(dtype, value, code, message):
    assert refusal(scalar(dtype), value) == (code, f"argument 'n' of kernel 'k' {message}")


def test_an_array_is_packed_as_its_address(array, tensor):
    assert bytes_of(pointer(), array(0x7000)) == struct.pack("<Q", 0x7000)
    assert bytes_of(pointer(), tensor(0x8000)) == struct.pack("<Q", 0x8000)
    assert bytes_of(pointer("bfloat16", 2, 2), tensor(0x8002, "bfloat16")) == struct.pack("<Q", 0x8002)
    assert bytes_of(pointer(), array(0, shape=(0,))) == bytes(8)


@pytest.mark.parametrize(
    ("kwargs", "code", "message"),
    [
        ({"typestr": "<f8"}, "E0904", "is a Pointer[Float32]; got an array of float64"),
        ({"typestr": "<i4"}, "E0904", "is a Pointer[Float32]; got an array of int32"),
        ({"typestr": ">f4"}, "E0904", "cannot be used as a device array: its elements are big-endian (>f4)"),
        ({"readonly": True}, "E0906", "is a read-only array, but the kernel may write through this pointer"),
        ({"shape": (4, 4), "strides": (4, 16)}, "E0906", "is not contiguous (shape (4, 4))"),
        ({"strides": (8,)}, "E0906", "is not contiguous (shape (8,))"),
    ],
)
def test_wrong_arrays(array, kwargs, code, message):
    assert refusal(pointer(), array(0x7000, **kwargs)) == (code, f"argument 'p' of kernel 'k' {message}")


IN_THE_COPY = "; what the kernel writes goes there"


@pytest.mark.parametrize("mutable", [True, False])
@pytest.mark.parametrize(
    ("dtype", "given", "help"),
    [
        ("float32", {"typestr": "<f8"}, 'convert it: a.astype("float32")'),
        ("float32", {"strides": (8,)}, "pass a contiguous copy of it"),
        ("bfloat16", {"typestr": "<f4"}, 'convert it: a.astype("bfloat16")'),
    ],
)
def test_what_is_to_be_done_about_a_wrong_array(array, dtype, given, help, mutable):
    wanted = packer(pointer(dtype, 4 if dtype == "float32" else 2, mutable=mutable))
    with pytest.raises(LaunchError) as caught:
        wanted.pack([array(0x7000, **given)])
    assert caught.value.diagnostics[0].help == help + (IN_THE_COPY if mutable else "")


def test_a_read_only_array_for_a_pointer_that_may_write(array):
    with pytest.raises(LaunchError) as caught:
        packer(pointer()).pack([array(0x7000, readonly=True)])
    assert caught.value.diagnostics[0].help == (
        "where the kernel only reads it, declare it `Pointer[Float32, ImmutAnyOrigin]`; else pass a copy, which gets "
        "what the kernel writes"
    )


def test_strides_that_leave_no_gap_are_contiguous(array):
    packer(pointer()).pack([array(0x7000, shape=(4, 1, 2), strides=(8, 999, 4))])
    packer(pointer()).pack([array(0x7000, shape=(0, 2), strides=(999, 4))])


def test_read_only_arrays_go_into_pointers_that_only_read(array):
    packer(pointer(mutable=False)).pack([array(0x7000, readonly=True)])


def test_misaligned_arrays(array):
    code, message = refusal(pointer(align=16), array(0x7008))
    assert (code, message) == (
        "E0906",
        "argument 'p' of kernel 'k' starts at address 0x7008, which is not a multiple of 16 bytes",
    )


def test_values_that_are_no_device_arrays(tensor):
    named = "argument 'p' of kernel 'k' "
    assert refusal(pointer(), None) == ("E0904", named + "is a Pointer[Float32]; got None")
    assert refusal(pointer(), 0x7000) == ("E0904", named + "is a Pointer[Float32]; got int 28672")
    assert refusal(pointer(), [1.0]) == ("E0904", named + "is a Pointer[Float32]; got list")
    assert refusal(pointer(), np.zeros(4, np.float32)) == ("E0905", named + "is in host memory (numpy, float32)")
    assert refusal(pointer(), tensor(0x10, device="cpu")) == ("E0905", named + "is in host memory (torch, float32)")
    assert refusal(pointer(), tensor(0x10, contiguous=False)) == ("E0906", named + "is not contiguous (shape (8,))")


def test_pointers_to_structs_take_bytes_or_elements_of_their_size(array):
    rows = pointer("Row", 12, 4)
    packer(rows).pack([array(0x7000, "<u1", (24,))])
    packer(rows).pack([array(0x7000, "|V12", (2,))])
    code, message = refusal(rows, array(0x7000, "<u1", (25,)))
    assert code == "E0904"
    assert message.endswith("is a Pointer[Row] with 12 bytes per element; got an array of uint8")


POINT = StructParam("pt", "Point", (ScalarParam("x", "int8"), ScalarParam("y", "float32")))


@pytest.mark.parametrize("value", [(3, 0.5), [3, 0.5], {"y": 0.5, "x": 3}, namedtuple("Point", "x y")(3, 0.5)])
def test_structs_are_given_by_field_and_packed_as_parameters_of_their_own(value):
    packed = packer(POINT).pack([value])
    assert ctypes.string_at(packed.pointers[0], 1) == b"\x03"
    assert ctypes.string_at(packed.pointers[1], 4) == struct.pack("<f", 0.5)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ((3,), "argument 'pt' of kernel 'k' is the struct Point with 2 fields; got 1 value"),
        ({"x": 3, "z": 1}, "argument 'pt' of kernel 'k' is the struct Point with fields x, y; got x, z"),
        (3, "argument 'pt' of kernel 'k' is the struct Point; got int 3"),
        ((3, "a"), "argument 'pt.y' of kernel 'k' is a Float32; got str 'a'"),
    ],
)
def test_wrong_structs(value, message):
    assert refusal(POINT, value) == ("E0904", message)


def test_tensor_maps_are_128_bytes_by_value():
    data = bytes(range(128))
    assert bytes_of(TensorMapParam("map"), data) == data
    assert refusal(TensorMapParam("map"), b"abc") == (
        "E0904",
        "argument 'map' of kernel 'k' is a TensorMap of 128 bytes; got 3 bytes",
    )


def test_the_count_is_checked_first():
    with pytest.raises(LaunchError) as caught:
        packer(pointer(), scalar("int32")).pack([1])
    assert caught.value.diagnostics[0].message == (
        "kernel 'k' takes 2 arguments (p: Pointer[Float32], n: Int32), got 1"
    )


def test_all_wrong_arguments_are_reported_together():
    with pytest.raises(LaunchError) as caught:
        packer(pointer(), scalar("int32")).pack([None, 0.5])
    assert [d.code for d in caught.value.diagnostics] == ["E0904", "E0904"]


@pytest.mark.parametrize(
    ("dtype", "value", "help"),
    [("int32", 2.0, "convert it: int(…)"), ("float32", "1.5", "convert it: float(…)"), ("int32", None, None),
     ("int32", object(), None), ("float32", 1j, None), ("int32", [3], None)],
)  # fmt: skip
def test_only_what_converts_to_a_number_is_told_to_be_converted(dtype, value, help):
    with pytest.raises(LaunchError) as caught:
        bytes_of(scalar(dtype), value)
    assert caught.value.diagnostics[0].help == help
