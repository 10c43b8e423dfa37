"""Arguments of a simulated launch: what is taken, in place, and what each refusal says."""

from types import SimpleNamespace

import numpy as np
import pytest

from ptxdsl.cuda.host_arguments import HostPacker
from ptxdsl.diagnostics import LaunchError
from ptxdsl.signature import KernelSignature, PointerParam, ScalarParam, StructParam

F32 = PointerParam("a", "float32", 4, 4, mutable=True)
BF16 = PointerParam("a", "bfloat16", 2, 2, mutable=True)


def bind(param, value):
    return HostPacker(KernelSignature("k", (param,)), {}).bind([value])


def refusal(param, value):
    with pytest.raises(LaunchError) as caught:
        bind(param, value)
    (problem,) = caught.value.diagnostics
    return problem.code, problem.message


def test_an_array_is_used_in_place():
    array = np.zeros(4, np.float32)
    (leaf,) = bind(F32, array)
    leaf[1] = 3
    assert array.tolist() == [0, 3, 0, 0]


def test_an_array_without_dimensions_has_one_element():
    array = np.zeros((), np.float32)
    assert bind(F32, array)[0].ctypes.data == array.ctypes.data


def test_scalars_and_structs_are_laid_out_as_for_the_card():
    pair = StructParam("p", "Pair", (ScalarParam("x", "int32"), F32))
    array = np.zeros(1, np.float32)
    number, leaf = HostPacker(KernelSignature("k", (pair,)), {}).bind([{"x": -2, "a": array}])
    assert number == b"\xfe\xff\xff\xff"
    assert leaf.ctypes.data == array.ctypes.data


def test_the_bits_of_types_that_numpy_lacks():
    bits = np.array([0x3F80, 0x4000], np.uint16)
    assert bind(BF16, bits)[0].ctypes.data == bits.ctypes.data
    assert refusal(BF16, np.zeros(2, np.float16)) == (
        "E0904", "argument 'a' of kernel 'k' is a Pointer[BFloat16]; got an array of float16"
    )  # fmt: skip


def test_a_cpu_tensor_is_used_in_place():
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(4, dtype=torch.bfloat16, requires_grad=True)
    (leaf,) = bind(BF16, tensor)
    leaf[2] = 0x3F80
    assert tensor.tolist() == [0, 0, 1, 0]
    assert refusal(BF16, torch.zeros((4, 4), dtype=torch.bfloat16).t())[0] == "E0906"


@pytest.mark.parametrize(
    ("value", "code", "words"),
    [
        (np.zeros(4), "E0904", "got an array of float64"),
        (np.zeros(4, np.uint16), "E0904", "got an array of uint16"),
        (np.zeros((4, 4), np.float32).T[:2], "E0906", "is not contiguous"),
        (np.frombuffer(bytes(16), np.float32), "E0906", "is a read-only array"),
        (np.zeros(17, np.uint8)[1:].view(np.float32), "E0906", "is not a multiple of 4 bytes"),
        (None, "E0904", "got None"),
        (3.5, "E0904", "got float 3.5"),
        ([1.0], "E0904", "got list"),
        (np.float32(1), "E0904", "got numpy.float32"),
        (np.zeros(4, ">f4"), "E0904", "its elements are big-endian (>f4)"),
        (np.ma.masked_equal(np.zeros(4, np.float32), 0), "E0904", "it is a masked array"),
    ],
)
def test_refusals(value, code, words):
    found, message = refusal(F32, value)
    assert found == code
    assert words in message


@pytest.mark.parametrize("damage", [{"typestr": "x"}, {"data": ("x", False)}, {"data": None}, {"shape": 4}])
def test_a_damaged_interface(damage):
    interface = {"shape": (4,), "typestr": "<f4", "data": (4096, False), "version": 3, **damage}
    found, message = refusal(F32, SimpleNamespace(__cuda_array_interface__=interface))
    assert found == "E0904" and "its __cuda_array_interface__ is damaged" in message


def test_an_array_of_the_device_is_out_of_reach():
    interface = {"shape": (4,), "typestr": "<f4", "data": (4096, False), "version": 3}
    assert refusal(F32, SimpleNamespace(__cuda_array_interface__=interface))[0] == "E0905"
