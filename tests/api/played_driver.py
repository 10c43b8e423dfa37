"""A driver without a card: it keeps what it was asked to do, and reads the launched parameters back from memory."""

import ctypes
import os
import types
from dataclasses import dataclass, field, replace

from ptxdsl.cuda.code import Code
from ptxdsl.cuda.driver_interface import Device, Function
from ptxdsl.cuda.errors import DriverError

PLAIN = Function(0x1000, 1024, 32, 0, 48 * 1024)
H200 = Device(0, "NVIDIA H200", (9, 0), max_shared=227 * 1024)

# What the fake calls its CUresults.
STATUSES = ["CUDA_SUCCESS", "CUDA_ERROR_INVALID_CONTEXT", "CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_STRANGE"]
ATTRIBUTES = {4: "cluster", 2: "cooperative", 6: "pdl"}


@dataclass
class FakeDriver:
    """fails: the driver result that a call is to return, by the call's name. sizes: bytes of each parameter to read."""

    device: Device = H200
    devices: int = 1
    addresses: None = None
    process: int = field(default_factory=os.getpid)
    hangs: bool = False
    function: Function = PLAIN
    fails: dict[str, tuple[str, str]] = field(default_factory=dict)
    owners: dict[int, int] = field(default_factory=dict)
    memory: dict[int, bytes] = field(default_factory=dict)
    sizes: tuple[int, ...] = ()
    blocks: int = 2
    clusters: int = 8
    capturing: bool = False
    endless: bool = False
    images: list[bytes] = field(default_factory=list)
    unloaded: list[bytes] = field(default_factory=list)
    allowed: list[int] = field(default_factory=list)
    large_clusters: int = 0
    launches: list[dict] = field(default_factory=list)
    waited: list[int | None] = field(default_factory=list)

    def _fail(self, call):
        if call in self.fails:
            raise DriverError(call, *self.fails[call])

    def version(self):
        return 13000

    def error_name(self, status):
        return STATUSES[status]

    def context(self, ordinal):
        self._fail("context")
        return 1, self.device

    def current_device(self):
        return self.device.ordinal

    def load(self, image, name):
        self._fail("load")
        self.images.append(image)
        code = Code(lambda: self.unloaded.append(image))
        return replace(self.function, device=self.device.ordinal, code=code)

    def allow_shared(self, function, size):
        self.allowed.append(size)

    def allow_large_clusters(self, function):
        self.large_clusters += 1

    def resident_blocks(self, function, threads, shared):
        self._fail("occupancy")
        return self.blocks

    def resident_clusters(self, function, config):
        return self.clusters

    def largest_cluster(self, function, config):
        return 8

    def pointer_device(self, address):
        self._fail("pointer")
        return self.owners.get(address)

    def copy_out(self, host, device, size):
        self._fail("copy")
        ctypes.memmove(host, self.memory[device], size)

    def is_capturing(self, stream):
        self._fail("capturing")
        return self.capturing

    def record(self, stream):
        return 1

    def reached(self, event):
        self._fail("reached")
        return not (self.endless and self.launches)

    def forget(self, event):
        pass

    def synchronise(self, stream=None):
        self._fail("synchronise")
        self.waited.append(stream)

    def launch_ex(self, config, function, parameters, extra):
        """cuLaunchKernelEx, with the same four pointers."""
        if "launch" in self.fails:
            return STATUSES.index(self.fails["launch"][0])
        given = config._obj
        data = []
        for i, size in enumerate(self.sizes):
            data.append(ctypes.string_at(parameters._obj[i], size))
        made = {
            "grid": tuple(given.grid), "block": tuple(given.block), "shared": given.shared,
            "stream": given.stream or 0, "data": data,
        }  # fmt: skip
        for i in range(given.attribute_count):
            attribute = given.attributes[i]
            made[ATTRIBUTES[attribute.id]] = tuple(attribute.value[:3])
        self.launches.append(made)
        return 0


class DeviceArray:
    """What CuPy's and Numba's arrays look like from outside."""

    def __init__(self, address, typestr="<f4", shape=(8,), strides=None, readonly=False, **more):
        self.__cuda_array_interface__ = {
            "data": (address, readonly), "typestr": typestr, "shape": shape, "strides": strides, "version": 3, **more,
        }  # fmt: skip


class Dtype:
    """PyTorch's are objects of which there is one each."""

    known: dict = {}  # noqa: RUF012

    def __new__(cls, name):
        return cls.known.setdefault(name, super().__new__(cls))

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return f"torch.{self.name}"


SIZES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "bool": 1, "int8": 1}


class Tensor:
    """What the launch path asks of a PyTorch tensor."""

    def __init__(self, address, dtype="float32", shape=(8,), device="cuda", index=0, contiguous=True):
        self.dtype = Dtype(dtype)
        self.shape = shape
        self.device = types.SimpleNamespace(type=device, index=index if device == "cuda" else None)
        self._address, self._contiguous = address, contiguous

    def data_ptr(self):
        return self._address

    def get_device(self):
        return -1 if self.device.index is None else self.device.index

    def element_size(self):
        return SIZES[self.dtype.name]

    def stride(self):
        strides, step = [], 1
        for length in reversed(self.shape):
            strides.append(step)
            step *= length
        return tuple(reversed(strides))

    def is_contiguous(self):
        return self._contiguous
