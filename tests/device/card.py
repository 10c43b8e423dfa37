"""A card through cuda.bindings, as little of it as the dump scripts need: memory, kernels from PTX text, launches."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np


class Card:
    """Device 0 and ``memory``: the address of that many bytes on it."""

    def __init__(self, size: int) -> None:
        from cuda.bindings import driver

        self.cu: Any = driver
        self.call("cuInit", 0)
        device = self.call("cuDeviceGet", 0)
        context = self.call("cuDevicePrimaryCtxRetain", device)
        self.call("cuCtxSetCurrent", context)
        self.name = self.call("cuDeviceGetName", 96, device).split(b"\0")[0].decode()
        self.driver_version = int(self.call("cuDriverGetVersion"))
        self.memory = int(self.call("cuMemAlloc", size))
        self._modules: dict[str, Any] = {}

    def call(self, name: str, *arguments: Any) -> Any:
        status, *values = getattr(self.cu, name)(*arguments)
        if status != self.cu.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"{name}: {status.name}")
        return values[0] if len(values) == 1 else tuple(values)

    def kernel(self, ptx: str, name: str) -> Any:
        if ptx not in self._modules:
            self._modules[ptx] = self.call("cuModuleLoadData", ptx.encode() + b"\0")
        return self.call("cuModuleGetFunction", self._modules[ptx], name.encode())

    def write(self, address: int, data: np.ndarray) -> None:
        self.call("cuMemcpyHtoD", address, data.ctypes.data, data.nbytes)

    def read(self, address: int, size: int) -> np.ndarray:
        data = np.empty(size, np.uint8)
        self.call("cuMemcpyDtoH", data.ctypes.data, address, size)
        return data

    def launch(self, kernel: Any, arguments: list[Any], shared: int, threads: int = 128) -> None:
        """One block, and waits for it. arguments: bytes, arrays (their bytes), 64-bit addresses, 32-bit numbers."""
        kept = []
        for argument in arguments:
            if isinstance(argument, int):
                argument = argument.to_bytes(8, "little")
            data = argument if isinstance(argument, bytes) else argument.tobytes()
            raw = ctypes.create_string_buffer(len(data) + 64)  # tensor maps want 64-byte alignment
            start = -ctypes.addressof(raw) % 64
            ctypes.memmove(ctypes.addressof(raw) + start, data, len(data))
            kept.append((raw, ctypes.addressof(raw) + start))
        pointers = (ctypes.c_void_p * len(kept))(*(address for _, address in kept))
        self.call("cuLaunchKernel", kernel, 1, 1, 1, threads, 1, 1, shared, 0, ctypes.addressof(pointers), 0)
        self.call("cuCtxSynchronize")
