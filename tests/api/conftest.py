"""A driver without a card: it keeps what it was asked to do, and reads the launched parameters back from memory."""

import ctypes
import sys
import types
from dataclasses import dataclass, field

import pytest

from ptxdsl.cuda.driver import Device, Function
from ptxdsl.cuda.errors import DriverError

PLAIN = Function("f", 1024, 32, 0, 48 * 1024)
H200 = Device(0, "NVIDIA H200", (9, 0), max_shared=227 * 1024)


@dataclass
class FakeDriver:
    """fails: the driver result that a call is to return, by the call's name. sizes: bytes of each parameter to read."""

    device: Device = H200
    context_id: int = 1
    function: Function = PLAIN
    fails: dict[str, tuple[str, str]] = field(default_factory=dict)
    owners: dict[int, int] = field(default_factory=dict)
    sizes: tuple[int, ...] = ()
    images: list[bytes] = field(default_factory=list)
    allowed: list[int] = field(default_factory=list)
    launches: list[dict] = field(default_factory=list)

    def _fail(self, call):
        if call in self.fails:
            raise DriverError(call, *self.fails[call])

    def version(self):
        return 13000

    def context(self, ordinal):
        return self.context_id, self.device

    def load(self, image, name):
        self._fail("load")
        self.images.append(image)
        return self.function

    def allow_shared(self, function, size):
        self.allowed.append(size)

    def pointer_device(self, address):
        return self.owners.get(address)

    def launch(self, function, grid, block, shared, stream, parameters):
        self._fail("launch")
        data = []
        for i, size in enumerate(self.sizes):
            data.append(ctypes.string_at(ctypes.c_void_p.from_address(parameters + 8 * i).value, size))
        self.launches.append({"grid": grid, "block": block, "shared": shared, "stream": stream, "data": data})


class DeviceArray:
    """What CuPy's and Numba's arrays look like from outside."""

    def __init__(self, address, typestr="<f4", shape=(8,), strides=None, readonly=False):
        self.__cuda_array_interface__ = {
            "data": (address, readonly), "typestr": typestr, "shape": shape, "strides": strides, "version": 3,
        }  # fmt: skip


class Tensor:
    """What the launch path asks of a PyTorch tensor."""

    def __init__(self, address, dtype="float32", shape=(8,), device="cuda", index=0, contiguous=True):
        self.dtype = f"torch.{dtype}"
        self.shape = shape
        self.device = types.SimpleNamespace(type=device, index=index if device == "cuda" else None)
        self._address, self._contiguous = address, contiguous

    def data_ptr(self):
        return self._address

    def element_size(self):
        return 1 if "8" in self.dtype.partition("_")[0][-2:] else 2 if "16" in self.dtype else 4

    def is_contiguous(self):
        return self._contiguous


@pytest.fixture
def driver():
    return FakeDriver()


@pytest.fixture
def array():
    return DeviceArray


@pytest.fixture
def tensor(monkeypatch):
    """Tensors whose library has 0x77 as the current stream of device 0."""
    torch = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(current_stream=lambda index: types.SimpleNamespace(cuda_stream=0x77 + index))
    monkeypatch.setitem(sys.modules, "torch", torch)
    return Tensor
