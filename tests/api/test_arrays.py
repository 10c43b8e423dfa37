"""Arrays of libraries that are not here: DLPack, the CUDA array interface, JAX as it looks from outside."""

import ctypes
import gc

import numpy as np
import pytest
from played_driver import DeviceArray, Tensor

import ptxdsl
from ptxdsl import LaunchError
from ptxdsl.cuda import dlpack
from ptxdsl.cuda.arrays import view
from ptxdsl.cuda.streams import current_of, exported_stream, library_of, stream_handle

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.argtypes, new_capsule.restype = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p), ctypes.py_object

DESTROYED = []
DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda capsule: DESTROYED.append(capsule))
OFFSET = dlpack._Versioned.tensor.offset


class Exporter:
    """An array of a library that has DLPack and nothing else."""

    def __init__(self, address=0x7000, code=2, bits=32, shape=(4, 2), strides=None, device=(2, 0), readonly=False,
                 versioned=True, offset=0, lanes=1, major=1):  # fmt: skip
        self.device, self.versioned, self.streams = device, versioned, []
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
        made = dlpack._Versioned(major, 1, None, None, 1 if readonly else 0)
        tensor = made.tensor
        tensor.data, tensor.device_type, tensor.device_id, tensor.ndim = address, *device, len(shape)
        tensor.code, tensor.bits, tensor.lanes, tensor.byte_offset = code, bits, lanes, offset
        tensor.shape = self.shape
        if self.strides is not None:
            tensor.strides = self.strides
        self.made = made

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None, **keywords):
        if keywords and not self.versioned:
            raise TypeError("unexpected keyword 'max_version'")
        self.streams.append(stream)
        start = ctypes.addressof(self.made)
        if self.versioned:
            return new_capsule(start, b"dltensor_versioned", DESTRUCTOR)
        return new_capsule(start + OFFSET, b"dltensor", DESTRUCTOR)


@pytest.mark.parametrize("versioned", [True, False])
def test_a_dlpack_array(versioned):
    found = view(Exporter(offset=16, versioned=versioned))
    assert (found.address, found.dtype, found.itemsize, found.shape) == (0x7010, "float32", 4, (4, 2))
    assert (found.contiguous, found.readonly, found.ordinal, found.host) == (True, False, 0, False)
    assert view(Exporter(device=(2, 3))).ordinal == 3
    assert not view(Exporter(strides=(1, 4))).contiguous
    assert view(Exporter(strides=(2, 1))).contiguous
    assert view(Exporter(readonly=True)).readonly
    assert view(Exporter(device=(1, 0))).host and view(Exporter(device=(3, 0))).host


@pytest.mark.parametrize(
    ("code", "bits", "name"),
    [(0, 8, "int8"), (1, 64, "uint64"), (2, 16, "float16"), (4, 16, "bfloat16"), (6, 8, "bool"),
     (10, 8, "float8_e4m3fn"), (12, 8, "float8_e5m2"), (5, 64, "DLPack type 5 of 64")],
)  # fmt: skip
def test_dlpack_types(code, bits, name):
    assert view(Exporter(code=code, bits=bits)).dtype == name


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"device": (10, 0)}, "it lies in memory of another kind (ROCm)"),
        ({"device": (77, 0)}, "it lies in memory of another kind (device type 77)"),
        ({"lanes": 4}, "its elements have 32 bits in 4 lanes"),
        ({"bits": 4}, "its elements have 4 bits in 1 lanes"),
        ({"major": 2}, "its library speaks DLPack 2.1"),
    ],
)
def test_dlpack_arrays_that_cannot_be_used(changes, words):
    with pytest.raises(TypeError) as caught:
        view(Exporter(**changes))
    assert str(caught.value) == words


def test_a_library_that_refuses_is_quoted():
    class Refuses(Exporter):
        def __dlpack__(self, **keywords):
            raise BufferError("it has been deleted")

    with pytest.raises(TypeError, match="its library does not export it: it has been deleted"):
        view(Refuses())


def test_a_capsule_that_is_none():
    class Strange(Exporter):
        def __dlpack__(self, **keywords):
            return 5

    with pytest.raises(TypeError, match="its __dlpack__ gives no DLPack capsule"):
        view(Strange())


def test_the_capsule_goes_back_and_the_library_is_told_the_stream():
    gc.collect()
    DESTROYED.clear()
    array = Exporter()
    found = view(array, lambda: 0x51)
    assert DESTROYED == [] and array.streams == [0x51]
    del found
    assert len(DESTROYED) == 1
    view(array, lambda: 0)
    assert array.streams[-1] == 1  # DLPack's number of the default stream
    host = Exporter(device=(1, 0))
    view(host, lambda: 0x51)
    assert host.streams == [None]


Jax = type("ArrayImpl", (Exporter,), {"__module__": "jaxlib._jax"})
TEXT = "@kernel\ndef k(p: Pointer[Float32, {}], q: Pointer[Float32, MutAnyOrigin]):\n    q[] = p[]\n"


def launch(driver, origin, *arguments, **keywords):
    from ptxdsl.api.module import Module
    from ptxdsl.source import Source

    Module(Source("k.pdsl", TEXT.format(origin)), driver=driver).k[1, 1](*arguments, **keywords)


def test_jax_arrays_are_read_and_not_written(driver):
    launch(driver, "ImmutAnyOrigin", Jax(), Exporter())
    with pytest.raises(LaunchError) as caught:
        launch(driver, "MutAnyOrigin", Jax(), Exporter())
    found = caught.value.diagnostics[0]
    assert (found.code, found.message) == (
        "E0906",
        "argument 'p' of kernel 'k' is a JAX array, which is immutable, but the kernel may write through this pointer",
    )
    assert found.help == "write into a copy, or hand the array over: ptxdsl.donate(x)"
    launch(driver, "MutAnyOrigin", ptxdsl.donate(Jax()), Exporter())
    assert driver.waited == [0]
    with pytest.raises(LaunchError, match="cannot be used as a device array: it lies in memory of another kind"):
        launch(driver, "ImmutAnyOrigin", Jax(device=(10, 0)), Exporter())
    with pytest.raises(LaunchError, match=r"is in host memory \(jax, float32\)"):
        launch(driver, "ImmutAnyOrigin", Jax(device=(1, 0)), Exporter())


def test_jax_waits_on_the_stream_of_the_launch(driver, tensor):
    array = Jax()
    launch(driver, "ImmutAnyOrigin", array, tensor(0x80))
    launch(driver, "ImmutAnyOrigin", array, tensor(0x80), stream=5)
    assert array.streams == [0x77, 5]
    assert [made["stream"] for made in driver.launches] == [0x77, 5]


def test_donated_is_for_arrays(driver):
    with pytest.raises(LaunchError, match=r"is a Pointer\[Float32\]; got ptxdsl\.Donated"):
        launch(driver, "MutAnyOrigin", ptxdsl.donate(3), Exporter())


def test_the_stream_that_an_interface_asks_for(driver):
    driver.owners = {0x40: 0, 0x80: 0}
    launch(driver, "MutAnyOrigin", DeviceArray(0x40), DeviceArray(0x80, stream=0x99))
    launch(driver, "MutAnyOrigin", DeviceArray(0x40, stream=1), DeviceArray(0x80, stream=0x99), stream=7)
    assert [made["stream"] for made in driver.launches] == [0x99, 7]
    assert exported_stream([1, {"x": (DeviceArray(0x40, stream=2),)}, None]) == 2
    assert exported_stream([3, DeviceArray(0x40, stream=None)]) == 0
    assert exported_stream([ptxdsl.TensorMap(DeviceArray(0x40, shape=(16, 16), stream=7), (4, 4))]) == 7


def test_a_masked_array(driver):
    with pytest.raises(LaunchError, match="cannot be used as a device array: it is a masked array"):
        launch(driver, "MutAnyOrigin", DeviceArray(0x40, mask=object()), Exporter())


def test_a_tensor_without_memory(driver, tensor):
    """A sparse one, or one that a compiler traces with."""

    class Fake(tensor):
        def data_ptr(self):
            raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    with pytest.raises(LaunchError, match="the tensor has no memory of its own: Cannot access") as caught:
        launch(driver, "MutAnyOrigin", Fake(0), Exporter())
    assert caught.value.diagnostics[0].code == "E0904"


def test_all_arguments_are_given(driver):
    for given, count in (((), 0), ((Exporter(),) * 3, 3)):
        with pytest.raises(LaunchError, match=rf"takes 2 arguments \(p: .*, q: .*\), got {count}$") as caught:
            launch(driver, "MutAnyOrigin", *given)
        assert caught.value.diagnostics[0].code == "E0903"


def test_the_library_whose_current_stream_counts(tensor):
    assert library_of([1, None, np.zeros(2), DeviceArray(0)]) is None
    assert library_of([{"a": [1, tensor(0)]}]) == "torch"
    assert library_of([ptxdsl.donate(Tensor(0))]) == "torch"
    on_torch, on_other = (ptxdsl.TensorMap(made(0x4000, shape=(16, 16)), (4, 4)) for made in (tensor, DeviceArray))
    assert library_of([on_other, {"m": on_torch}, 1]) == "torch"
    assert library_of([on_other, 1]) is None
    assert current_of("torch")(0) == 0x77
    assert current_of("numba") is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((1, 5), "version 1 of the protocol is not known"),
        (5, "it does not give a pair of version and handle"),
        (("x",), "it does not give a pair of version and handle"),
    ],
)
def test_streams_with_another_protocol(given, words):
    class Stream:
        def __cuda_stream__(self):
            return given

    with pytest.raises(LaunchError, match=words) as caught:
        stream_handle(Stream())
    assert caught.value.diagnostics[0].code == "E0910"
