"""Generated launch code: it hands over the same bytes as the general way, and takes nothing that this refuses."""

import threading
from collections import namedtuple

import numpy as np
import pytest
from played_driver import DeviceArray, FakeDriver, Tensor

from ptxdsl import LaunchError, TensorMap
from ptxdsl.artifact import Compiled
from ptxdsl.cuda import fast
from ptxdsl.cuda.configuration import Shape
from ptxdsl.cuda.launch import LoadedKernel
from ptxdsl.options import Options
from ptxdsl.signature import KernelSignature, PointerParam, ScalarParam, StructParam, TensorMapParam

ONE = Shape((1, 1, 1), (32, 1, 1))
F32 = PointerParam("p", "float32", 4, 4, True)


def loaded(driver, *params):
    signature = KernelSignature("k", params)
    return LoadedKernel(driver, driver.device, Compiled({"k": signature}, "", (), Options(), ""), signature, {})


def quick(kernel, arguments, stream=0):
    """Tries the quick ways alone; whether one took the arguments."""
    return any(way(kernel.plan(ONE), stream, arguments) == 0 for way in kernel.quick)


def scalar(dtype):
    return ScalarParam("n", dtype)


POINT = StructParam("pt", "Point", (scalar("int8"), StructParam("in", "In", (F32, scalar("float64")))))
Pair = namedtuple("Pair", "x y")
NAMED = StructParam("pt", "Pair", (ScalarParam("x", "int16"), ScalarParam("y", "bool")))
# What an epilogue without parameters is: no bytes, but an argument.
EMPTY = StructParam("e", "Empty", ())
HOLLOW = StructParam("h", "Hollow", (EMPTY, scalar("int16"), EMPTY))

CASES = [
    ((), ()),
    ((EMPTY,), ((),)),
    ((scalar("int8"), EMPTY, scalar("int64")), (1, [], 2)),
    ((F32, EMPTY), (Tensor(0x40), {})),
    ((HOLLOW, scalar("int8")), (((), 3, ()), 4)),
    ((scalar("int32"),), (-7,)),
    ((scalar("uint64"), scalar("int8"), scalar("int")), (2**64 - 1, -128, -(2**63))),
    ((scalar("int32"),), (np.int64(9),)),
    ((scalar("bool"), scalar("uint16"), scalar("bool")), (True, 65535, False)),
    ((scalar("float32"), scalar("float64")), (0.1, 0.1)),
    ((scalar("float32"), scalar("float64")), (3, -4)),
    ((scalar("float32"),), (np.float32(0.7),)),
    ((scalar("float16"), scalar("bfloat16"), scalar("float8_e4m3fn"), scalar("float8_e5m2")), (0.1, 0.1, 0.1, 0.1)),
    ((scalar("float16"), scalar("float32")), (float("nan"), float("-inf"))),
    ((F32, scalar("int8"), F32), (Tensor(0x7000), 1, Tensor(0x7F0012345678))),
    ((PointerParam("p", "bfloat16", 2, 2, True),), (Tensor(0x7002, "bfloat16"),)),
    ((F32,), (Tensor(0, shape=(0,)),)),
    ((POINT,), ((3, (Tensor(0x40), 0.5)),)),
    ((POINT, scalar("int32")), ([3, [Tensor(0x40), 0.5]], 4)),
    ((NAMED,), ({"y": True, "x": -2},)),
    ((NAMED, scalar("int8")), (Pair(-2, False), 5)),
    ((scalar("int8"), TensorMapParam("m"), scalar("int64")), (1, bytes(range(128)), 2)),
]


@pytest.mark.parametrize(("params", "arguments"), CASES)
def test_the_same_bytes_in_the_same_places(params, arguments, tensor):
    driver = FakeDriver()
    kernel = loaded(driver, *params)
    ends = [*kernel.packer.offsets[1:], kernel.packer.size]
    driver.sizes = tuple(end - start for start, end in zip(kernel.packer.offsets, ends, strict=False))
    kernel.start(kernel.plan(ONE), None, arguments)
    assert len(kernel.quick) == 1
    assert quick(kernel, arguments, None)
    first, second = driver.launches
    assert first == second


def ways(value, param, first=None):
    """A kernel that has launched with what fits, and whether its fast path takes another value."""
    driver = FakeDriver()
    kernel = loaded(driver, param)
    kernel.start(kernel.plan(ONE), 0, [first])
    assert kernel.quick
    taken = quick(kernel, [value])
    try:
        kernel.start(kernel.plan(ONE), 0, [value])
    except LaunchError:
        assert not taken, "refused by the general way"
        return False
    return taken


@pytest.mark.parametrize(
    ("param", "first", "value"),
    [
        (scalar("int32"), 1, 2**31),
        (scalar("int32"), 1, 1.0),
        (scalar("int32"), 1, True),
        (scalar("int32"), 1, None),
        (scalar("uint8"), 1, -1),
        (scalar("bool"), True, 1),
        (scalar("float32"), 1.0, 1e39),
        (scalar("float32"), 1.0, "1"),
        (scalar("float16"), 1.0, 65520.0),
        (scalar("bfloat16"), 1.0, 1e39),
        (scalar("float8_e4m3fn"), 1.0, float("inf")),
        (scalar("float64"), 1, 2**1100),
        (F32, Tensor(0x40), None),
        (F32, Tensor(0x40), Tensor(0x40, "int32")),
        (F32, Tensor(0x40), Tensor(0x40, contiguous=False)),
        (F32, Tensor(0x40), Tensor(0x40, device="cpu")),
        (F32, Tensor(0x40), Tensor(0x42)),
        (PointerParam("p", "float32", 16, 16, True), Tensor(0x40), Tensor(0x48)),
        (NAMED, (1, True), (1, True, 2)),
        (NAMED, (1, True), (True, True)),
        (NAMED, {"x": 1, "y": True}, {"x": 1, "z": True}),
        (NAMED, {"x": 1, "y": True}, {"x": 1, "y": True, "z": 2}),
        (EMPTY, (), (1,)),
        (EMPTY, {}, {"x": 1}),
        (EMPTY, (), None),
        (TensorMapParam("m"), bytes(128), bytes(127)),
        (TensorMapParam("m"), bytes(128), bytearray(128)),
    ],
)
def test_what_the_general_way_refuses_the_quick_one_leaves_to_it(param, first, value, tensor):
    assert not ways(value, param, first)


def test_another_device_is_left_to_the_general_way(driver, tensor):
    kernel = loaded(driver, F32)
    kernel.start(kernel.plan(ONE), 0, [tensor(0x40)])
    assert not quick(kernel, [tensor(0x40, index=1)])
    driver.devices = 2
    other = loaded(driver, F32)
    other.start(other.plan(ONE), 0, [tensor(0x40)])
    assert quick(other, [tensor(0x40)])
    driver.device = FakeDriver().device.__class__(1, "another", (9, 0))
    assert not quick(other, [tensor(0x40)])  # device 1 is current now


def test_the_current_stream_is_asked_for_every_time(driver, tensor, monkeypatch):
    import sys

    kernel = loaded(driver, F32)
    streams = iter((5, 6, 7))
    monkeypatch.setattr(sys.modules["torch"], "_C", type("C", (), {
        "_cuda_getCurrentRawStream": staticmethod(lambda ordinal: next(streams))
    }), raising=False)  # fmt: skip
    for _ in range(3):
        if not quick(kernel, [tensor(0x40)], None):
            kernel.start(kernel.plan(ONE), None, [tensor(0x40)])
    assert [made["stream"] for made in driver.launches] == [5, 6, 7]


def test_the_current_stream_of_the_library_that_a_tensor_map_is_on(driver, tensor):
    """Of PyTorch's it is asked for; an array of the interface says its own, which only the general way reads."""
    kernel = loaded(driver, TensorMapParam("m"))
    driver.owners[0x4000] = 0
    on_torch = TensorMap(tensor(0x4000, shape=(16, 16)), (4, 4))
    on_other = TensorMap(DeviceArray(0x4000, shape=(16, 16), stream=5), (4, 4))
    for _ in range(2):
        for given in (on_torch, on_other):
            if not quick(kernel, [given], None):
                kernel.start(kernel.plan(ONE), None, [given])
    assert [made["stream"] for made in driver.launches] == [0x77, 5, 0x77, 5]
    assert len(kernel.quick) == 1


def test_classes_that_come_back_have_one_way_each(driver, tensor):
    kernel = loaded(driver, scalar("float32"))
    for value in (1.0, 2, 3.0, 4, np.float32(5), 6.0, np.float32(7)):
        if not quick(kernel, [value]):
            kernel.start(kernel.plan(ONE), 0, [value])
    assert len(kernel.quick) == 3
    many = loaded(driver, *(scalar("float32") for _ in range(4)))
    for bits in range(16):
        many.start(many.plan(ONE), 0, [float(bits) if bits >> i & 1 else bits for i in range(4)])
    assert len(many.quick) == 8  # no more than that


def test_many_launches_are_told_of_once(driver, monkeypatch):
    told = []
    monkeypatch.setattr(LoadedKernel, "_to_machine_code", lambda self: told.append(self))
    kernel = loaded(driver, scalar("int32"))
    kernel.start(kernel.plan(ONE), 0, [1])
    for launches in range(3 * fast.OFTEN):
        assert quick(kernel, [1]) and len(told) == (launches >= fast.OFTEN)


def test_arrays_of_other_libraries_go_the_general_way(driver):
    driver.owners[0x40] = 0
    kernel = loaded(driver, F32)
    for _ in range(2):
        kernel.start(kernel.plan(ONE), None, [DeviceArray(0x40)])
    assert kernel.quick == [] and len(driver.launches) == 2


def test_threads_have_parameters_of_their_own(tensor):
    """The driver reads them while another thread packs."""
    driver = FakeDriver(sizes=(8, 4))
    kernel = loaded(driver, F32, scalar("int32"))
    kernel.start(kernel.plan(ONE), 0, [tensor(0), 0])
    plan, wrong = kernel.plan(ONE), []

    def work(number):
        for i in range(300):
            assert kernel.quick[0](plan, number, [Tensor(8 * number), i]) == 0

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for made in driver.launches[1:]:
        address = int.from_bytes(made["data"][0], "little")
        if address != 8 * made["stream"]:
            wrong.append(made)
    assert wrong == [] and len(driver.launches) == 1201


def test_a_launch_inside_a_launch(tensor):
    """A finalizer or signal handler may launch while the arguments of another launch are being read."""
    driver = FakeDriver(sizes=(8, 4))
    kernel = loaded(driver, F32, scalar("int32"))
    kernel.start(kernel.plan(ONE), 0, [tensor(0), 0])
    plan = kernel.plan(ONE)

    class Nested(Tensor):
        def data_ptr(self):
            assert kernel.quick[0](plan, 0, [Tensor(0x88), 2]) == 0
            return super().data_ptr()

    kernel.start(plan, 0, [Nested(0x40), 1])
    outer = Nested(0x48)
    assert kernel.quick[1](plan, 0, [outer, 3]) == 0
    assert [int.from_bytes(made["data"][0], "little") for made in driver.launches[-2:]] == [0x88, 0x48]


def test_the_code_can_be_read(driver, tensor):
    kernel = loaded(driver, F32, scalar("int32"))
    writer = fast.write(kernel.packer, [tensor(0), 1], 0)
    assert writer.lines == [
        "a0, a1, = arguments",
        "if a0.__class__ is not C0: return -1",
        "if a0.dtype is not D1 or a0.get_device() != 0 or not a0.is_contiguous(): return -1",
        "p0 = a0.data_ptr()",
        "if a1.__class__ is not C2: return -1",
        "if (p0) & 3: return -1",
    ]
