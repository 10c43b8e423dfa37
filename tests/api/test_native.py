"""Launches in machine code: the same bytes as the general way, nothing that this refuses, no references lost."""

import ctypes
import sys
import threading

import numpy as np
import pytest
from fake_library import FakeTensor
from played_driver import Dtype, Tensor

import ptxdsl
from ptxdsl.artifact import Compiled
from ptxdsl.cuda import native
from ptxdsl.cuda.configuration import Shape
from ptxdsl.cuda.driver import current_driver
from ptxdsl.cuda.fast import OFTEN
from ptxdsl.cuda.launch import LoadedKernel
from ptxdsl.cuda.native import CHECKED, PREPARED, Argument, Stream
from ptxdsl.cuda.scalars import SCALARS
from ptxdsl.options import Options
from ptxdsl.signature import KernelSignature, PointerParam, ScalarParam, TensorMapParam

ONE = Shape((1, 1, 1), (32, 1, 1))
F32 = PointerParam("p", "float32", 4, 4, True)
CODES = {"float32": (2, 32), "bfloat16": (4, 16), "int8": (0, 8), "bool": (6, 8)}

pytestmark = pytest.mark.skipif(sys.implementation.name != "cpython", reason="needs CPython's C API")


class Library:
    """A library with DLPack's exchange functions: every tensor of it is the one that was described last."""

    def __init__(self, built):
        self.handle = handle = ctypes.CDLL(str(built))
        self.tensor = FakeTensor.in_dll(handle, "fake_tensor")
        self.fails = ctypes.c_int.in_dll(handle, "fake_tensor_fails")
        self.stream = ctypes.c_void_p.in_dll(handle, "fake_stream")
        self.fails.value, self.stream.value = 0, 0
        self.name = ctypes.create_string_buffer(b"dlpack_exchange_api")
        functions = [ctypes.cast(handle[name], ctypes.c_void_p) for name in ("fake_from_object", "fake_current_stream")]
        self.later = native._Exchange(2, 0, 0)
        self.api = native._Exchange(1, 3, 0, 0, 0, 0, *(f.value for f in functions))
        self.later.earlier = ctypes.addressof(self.api)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p,) * 3
        capsule = new(ctypes.addressof(self.later), ctypes.addressof(self.name), None)
        self.kind = type("ExchangedTensor", (Tensor,), {"__dlpack_c_exchange_api__": capsule})

    def make(self, address, dtype="float32", shape=(8,), strides=None, device=0, offset=0):
        made = self.kind(address, dtype, shape, index=device, contiguous=strides is None)
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = (ctypes.c_int64 * len(shape))(*(made.stride() if strides is None else strides))
        code, bits = CODES[dtype]
        given = address - offset, 2, device, len(shape), code, bits, 1
        for name, value in zip((f[0] for f in FakeTensor._fields_), given, strict=False):
            setattr(self.tensor, name, value)
        self.tensor.shape, self.tensor.strides = ctypes.addressof(self.shape), ctypes.addressof(self.strides)
        self.tensor.byte_offset = offset
        return made


@pytest.fixture
def exchange(built, fake, tensor):
    return Library(built)


def loaded(*params):
    driver = current_driver()
    device = driver.context(None)[1]
    signature = KernelSignature("k", params)
    compiled = Compiled({"k": signature}, ".visible .entry k", (), Options(), "")
    return LoadedKernel(driver, device, compiled, signature, {})


def functions_of(kernel, arguments, stream=0):
    """The machine code for such arguments, after a launch by the general way."""
    plan = kernel.plan(ONE)
    kernel.start(plan, stream, arguments)
    kernel._to_machine_code()
    return plan.native


@pytest.mark.parametrize(
    ("params", "arguments"),
    [
        (("int32", "int8", "int64"), (-7, -128, 2**62)),
        (("uint8", "uint64", "uint32"), (255, 2**64 - 1, 2**32 - 1)),
        (("int", "uint", "int16"), (-(2**63), 2**63, -2)),
        (("bool", "bool", "int32"), (True, False, 5)),
        (("float32", "float64", "float32"), (0.1, 0.1, float("-inf"))),
        (("float32", "float64", "float32"), (3, 2**60 + 1, 1e-45)),
        (("int8", "float64", "bool"), (1, float("nan"), True)),
    ],
)
def test_numbers_in_the_same_places(fake, params, arguments):
    kernel = loaded(*(ScalarParam(f"n{i}", dtype) for i, dtype in enumerate(params)))
    (function,) = functions_of(kernel, arguments)
    fake.parameter_count = 3
    kernel.start(kernel.plan(ONE), 0, arguments)
    sizes = [SCALARS[dtype].size for dtype in params]
    expected = [value & (1 << 8 * size) - 1 for value, size in zip(fake.parameters, sizes, strict=False)]
    before = fake.launches
    assert function(arguments, None) == 0
    assert [v & (1 << 8 * size) - 1 for v, size in zip(fake.parameters, sizes, strict=False)] == expected
    assert fake.launches == before + 1


def test_tensors(exchange, fake):
    kernel = loaded(F32, ScalarParam("n", "int32"), PointerParam("q", "float32", 16, 16, True))
    fake.parameter_count = 3
    tensor = exchange.make(0x7000, shape=(2, 1, 4), strides=(4, 99, 1))
    tensor._contiguous = True
    (function,) = functions_of(kernel, (tensor, -1, tensor))
    fake.parameters[0] = fake.parameters[2] = 0
    assert function((tensor, 7, tensor), None) == 0
    assert (fake.parameters[0], fake.parameters[1] & 0xFFFFFFFF, fake.parameters[2]) == (0x7000, 7, 0x7000)
    moved = exchange.make(0x7F0012345670, offset=0x70)
    assert function((moved, 7, moved), None) == 0 and fake.parameters[0] == 0x7F0012345670


@pytest.mark.parametrize("dtype", ["bfloat16", "int8", "bool"])
def test_other_types(exchange, dtype):
    size = CODES[dtype][1] // 8
    kernel = loaded(PointerParam("p", dtype, size, size, True))
    tensor = exchange.make(0x7000, dtype)
    (function,) = functions_of(kernel, (tensor,))
    assert function((tensor,), 0) == 0
    other = exchange.make(0x7000, "float32")
    other.dtype = Dtype(dtype)
    assert function((other,), 0) == -1


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "bfloat16"},
        {"device": 1},
        {"shape": (4, 4), "strides": (8, 1)},
        {"shape": (4, 4), "strides": (1, 4)},
        {"address": 0x7002},
    ],
)
def test_tensors_that_are_left_to_the_general_way(exchange, fake, change):
    kernel = loaded(F32)
    (function,) = functions_of(kernel, (exchange.make(0x7000),))
    before = fake.launches
    other = exchange.make(**{"address": 0x7000, **change})
    assert function((other,), None) == -1
    exchange.make(0x7000)
    exchange.fails.value = -1
    assert function((other,), None) == -1
    exchange.fails.value, exchange.tensor.device_type = 0, 1
    assert function((other,), None) == -1
    assert fake.launches == before


@pytest.mark.parametrize(
    ("dtype", "first", "others"),
    [
        ("int8", 1, [128, -129, 2**70, -(2**70), True, 1.0, None, np.int8(1)]),
        ("uint64", 1, [-1, 2**64, 2**80, "1"]),
        ("uint16", 1, [-1, 65536]),
        ("bool", True, [1, None]),
        ("float32", 1.0, [1e39, -1e39, 1, "x", np.float64(1)]),
        ("float32", 1, [2**1100, 10**40, True]),
    ],
)
def test_numbers_that_are_left_to_the_general_way(fake, dtype, first, others):
    kernel = loaded(ScalarParam("n", dtype))
    (function,) = functions_of(kernel, (first,))
    before = fake.launches
    for value in others:
        assert function((value,), 0) == -1, value
    assert function((), 0) == function((first, first), 0) == -1
    assert fake.launches == before
    assert function((first,), 0) == 0  # and no error is left behind


def test_tensor_maps(fake):
    data = bytes(range(128))
    kernel = loaded(ScalarParam("n", "int8"), TensorMapParam("m"))
    (function,) = functions_of(kernel, (1, data))
    fake.parameter_count = 2
    assert function((5, data), 0) == 0
    assert fake.parameters[1] == int.from_bytes(data[:8], "little")
    assert function((5, b"short"), 0) == -1


def test_tensor_maps_that_are_objects(exchange, fake):
    data, tensor = bytes(range(128)), exchange.make(0x7000)

    class Map:
        def __init__(self, data):
            self.data = data
            self.description, self.array = None, tensor

        def encode(self):
            pass

    kernel = loaded(F32, TensorMapParam("m"))
    (function,) = functions_of(kernel, (tensor, Map(data)))
    fake.parameter_count = 2
    assert function((tensor, Map(data)), 0) == 0
    assert fake.parameters[1] == int.from_bytes(data[:8], "little")
    broken = Map(data)
    del broken.data
    for wrong in (Map(None), Map(b"short"), Map(bytearray(128)), data, broken):
        assert function((tensor, wrong), 0) == -1
    # it is for the map's array to say which stream, and that is asked in Python
    fake.parameter_count = 1
    assert functions_of(loaded(TensorMapParam("m")), (Map(data),)) == []


def test_tensor_maps_of_other_boxes(exchange, fake):
    """Of a parameter whose maps must be like something, only those that are like the first."""
    tensor = exchange.make(0x7000, shape=(16, 16))

    def made(box, swizzle="none"):
        return ptxdsl.TensorMap(tensor, box, swizzle=swizzle)

    like, formless = made((4, 4)), made((4, 4))
    del formless.form
    kernel = loaded(F32, TensorMapParam("m", ranks=(2,)))
    (function,) = functions_of(kernel, (tensor, made((4, 4))))
    others = (made((4, 8)), made((4, 4), "32B"), formless)
    watched = like, like.form, *others, others[0].form
    before = [sys.getrefcount(o) for o in watched]
    for _ in range(100):
        assert function((tensor, like), 0) == 0
        assert [function((tensor, other), 0) for other in others] == [-1, -1, -1]
    assert [abs(sys.getrefcount(o) - b) < 10 for o, b in zip(watched, before, strict=True)] == [True] * len(watched)


def test_streams(exchange, fake):
    kernel = loaded(F32)
    tensor = exchange.make(0x7000)
    (function,) = functions_of(kernel, (tensor,), None)
    exchange.stream.value = 0x123
    assert function((tensor,), None) == 0 and fake.stream == 0x123  # asked of the library in C
    assert function((tensor,), 0x456) == 0 and fake.stream == 0x456
    for wrong in (object(), True, -1, 2**70):
        assert function((tensor,), wrong) == -1
    numbers = loaded(ScalarParam("n", "int32"))
    (function,) = functions_of(numbers, (1,))
    assert function((1,), None) == 0 and fake.stream is None


def test_a_stream_that_is_asked_for_in_python(fake):
    kernel = loaded(ScalarParam("n", "int32"))
    functions_of(kernel, (1,))
    row = (Argument(native.INTEGER, int, -9, 9),)
    asked = []

    def current(ordinal):
        asked.append(ordinal)
        return answers.pop(0)

    answers = [0x77, "none", -1]
    function = kernel.natives.make(CHECKED, kernel.plan(ONE), Stream(native.OBJECT, current), row)
    assert function((1,), None) == 0 and fake.stream == 0x77 and asked == [0]
    assert function((1,), None) == function((1,), None) == -1
    assert function((1,), None) == -1  # it raises


@pytest.fixture
def module(fake):
    text = "@kernel\ndef k(p: Pointer[Float32, MutAnyOrigin], n: Int64):\n    p[] = Float32(n)\n"
    return ptxdsl.loads(text, "k.pdsl")


def test_machine_code_takes_over_when_launches_are_frequent(module, exchange, fake):
    tensor = exchange.make(0x7000)
    fake.parameter_count = 2
    for i in range(OFTEN + 20):
        module.k[1, 32](tensor, i)
        assert list(fake.parameters)[:2] == [0x7000, i]
    launcher = module.k[1, 32]
    assert launcher._native is not None and fake.launches == OFTEN + 20
    # whatever it does not know goes the other ways
    module.k[1, 32](tensor, np.int64(5))
    with pytest.raises(ptxdsl.LaunchError, match="E0904"):
        module.k[1, 32](tensor, 1.5)
    module.k[2, 64](tensor, 9, smem=50000)
    assert (list(fake.grid), fake.shared_bytes, fake.parameters[1]) == ([2, 1, 1], 50000, 9)
    assert len(module.k._loaded[0].plan(ONE).native) == 1


def test_a_prepared_launch_becomes_machine_code(module, exchange, fake):
    tensor = exchange.make(0x7000)
    fake.parameter_count = 2
    go = module.k.prepare(3, 32, tensor, 5, cluster=3, pdl=True)
    for _ in range(OFTEN + 5):
        go()
    assert type(go._go).__name__ == "builtin_function_or_method"
    exchange.stream.value = 0x55
    go()
    assert (fake.stream, list(fake.grid), list(fake.parameters)[:2]) == (0x55, [3, 1, 1], [0x7000, 5])
    assert list(fake.attribute_ids)[: fake.attribute_count] == [4, 6]
    go.bind(exchange.make(0x8000), 6)()
    assert list(fake.parameters)[:2] == [0x8000, 6] and type(go._go).__name__ == "builtin_function_or_method"
    fixed = module.k.prepare(3, 32, tensor, 5, stream=0x99)
    for _ in range(OFTEN + 5):
        fixed()
    assert fake.stream == 0x99


def test_a_library_that_does_not_say_its_stream(module, exchange, fake):
    """Machine code leaves it to Python, which asks the library in Python."""
    tensor = exchange.make(0x7000)
    go = module.k.prepare(1, 32, tensor, 5)
    for _ in range(OFTEN + 5):
        go()
    broken = Stream(native.FUNCTION, ctypes.cast(exchange.handle["cuInit"], ctypes.c_void_p).value)
    packed = go._packed
    image = bytes(packed.buffer[packed.offset : packed.offset + 16])
    go._go = go._kernel.natives.make(PREPARED, go._plan, broken, (), image)
    assert go._go() == -1
    go()
    assert fake.stream == 0x77


def test_faults_and_missing_contexts_come_out_of_machine_code(module, exchange, fake):
    tensor = exchange.make(0x7000)
    go = module.k.prepare(1, 32, tensor, 5)
    for _ in range(OFTEN + 5):
        module.k[1, 32](tensor, 1)
        go()
    count = fake.launches

    def work():  # a thread without a context
        module.k[1, 32](tensor, 2)
        go()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    other = threading.Thread(target=go)
    other.start()
    other.join()
    assert fake.launches == count + 3
    fake.fails = 700
    for call in (lambda: module.k[1, 32](tensor, 1), go):
        with pytest.raises(ptxdsl.DeviceError, match="outside of any allocation") as caught:
            call()
    assert "kernel 'k'" in caught.value.diagnostics[0].help or "this kernel" in caught.value.diagnostics[0].help


def test_with_several_devices_the_current_one_is_asked_for(exchange, fake):
    fake.devices = 2
    kernel = loaded(F32)
    tensor = exchange.make(0x7000)
    (function,) = functions_of(kernel, (tensor,))
    assert function((tensor,), 0) == 0
    driver = current_driver()
    driver._call("cuCtxSetCurrent", 0xC1)
    assert function((tensor,), 0) == -1
    driver._call("cuCtxSetCurrent", 0xC0)
    assert function((tensor,), 0) == 0


def test_no_reference_is_lost(exchange, fake):
    kernel = loaded(F32, ScalarParam("n", "int64"), ScalarParam("x", "float32"), TensorMapParam("m"))
    tensor, number, real, data = exchange.make(0x7000), 10**15, 0.5, bytes(128)
    arguments = (tensor, number, real, data)
    (function,) = functions_of(kernel, arguments)
    watched = (tensor, number, real, data, arguments, None, type(tensor), function)

    def counts():
        return [sys.getrefcount(o) for o in watched]

    before = counts()
    for _ in range(1000):
        assert function(arguments, None) == 0
        assert function((tensor, "wrong", real, data), None) == -1
    after = counts()
    assert [abs(a - b) < 10 for a, b in zip(after, before, strict=True)] == [True] * len(watched)


def test_threads(exchange, fake):
    """Parameters lie on the stack of each thread; the lock is given away during the call."""
    kernel = loaded(ScalarParam("n", "int64"), ScalarParam("m", "int64"))
    (function,) = functions_of(kernel, (1, 1))
    before, failed = fake.launches, []

    def work(number):
        for i in range(5000):
            if function((number, i), 0):
                failed.append(i)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]

    def with_context(number):
        current_driver().context(None)
        work(number)

    threads = [threading.Thread(target=with_context, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert fake.launches > before  # the count is not kept under a lock


def test_what_was_launched_last_is_remembered(exchange, fake):
    first, second = loaded(ScalarParam("n", "int64")), loaded(ScalarParam("n", "int8"))
    (a,), (b,) = functions_of(first, (1,)), functions_of(second, (1,))
    for function in (a, b, b, a):
        function((1,), 0)
    plans = native.latest()[:4]
    assert [p.kernel for p in plans] == [first, second, second, first]


def test_without_it_everything_goes_the_other_way(module, exchange, fake, monkeypatch):
    monkeypatch.setattr("ptxdsl.cuda.native.functions", lambda: None)
    monkeypatch.setattr("ptxdsl.cuda.prepared.functions", lambda: None)
    tensor = exchange.make(0x7000)
    go = module.k.prepare(1, 32, tensor, 5)
    for _ in range(OFTEN + 10):
        module.k[1, 32](tensor, 1)
        go()
    assert fake.launches == 2 * (OFTEN + 10)
    assert module.k[1, 32]._native is None


def test_interpreters_that_are_not_known(monkeypatch):
    for name, value in (("implementation", type(sys.implementation)(name="other")), ("maxsize", 2**31)):
        with monkeypatch.context() as changed:
            changed.setattr(sys, name, value)
            assert native.functions.__wrapped__() is None
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert native.functions.__wrapped__() is None
