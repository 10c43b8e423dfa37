"""One CTA of one kernel without a machine: runs PTX that has no host instructions, on NumPy arrays.

    >>> run("add.u32 %r3, %r1, %r2;", {"%r1": a, "%r2": b}, {"%r3": "u32"})

``run`` is for single instructions (a warp, register in, register out), ``launch`` for whole kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ptxdsl.ptx.reader import read
from ptxdsl.sim import layout
from ptxdsl.sim.program.program import build
from ptxdsl.sim.translate.warp_code import WarpCode, translate

HEAD = ".version 8.8\n.target sm_100a\n.address_size 64\n"
_SIZES = {"8": 2, "16": 2, "32": 4, "64": 8}


def zeros(size: int, dtype: np.dtype | str = np.uint8) -> np.ndarray:
    """An array whose first byte has a 64-byte aligned address."""
    dtype = np.dtype(dtype)
    raw = np.zeros(size * dtype.itemsize + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size * dtype.itemsize].view(dtype)


def compile_kernel(ptx: str, kernel: str | None = None, **options: object) -> WarpCode:
    text = ptx if ".version" in ptx else HEAD + ptx
    return translate(build(read(text), kernel), **options)


class Launch:
    """The records of one CTA of a kernel, and its memory. arrays: written in place; parameters: bytes, or arrays."""

    def __init__(
        self,
        code: WarpCode,
        parameters: Sequence[object] = (),
        *,
        threads: int = 32,
        shared: int = 1024,
        fuel: int = 1 << 24,
        ctaid: int = 0,
    ) -> None:
        self.code = code
        self.fuel = fuel
        symbols = code.program.symbols
        self.launch = zeros(1, layout.LAUNCH)
        self.cta = zeros(1, layout.CTA)
        warps = -(-threads // 32)
        self.warps = zeros(warps, layout.WARP)
        self.registers = [zeros(code.register_bytes) for _ in range(warps)]
        self.shared = zeros(symbols.dynamic_start + shared)
        self.local = zeros(max(symbols.local_bytes, 1) * 32 * warps)
        self.peers = zeros(16, np.uint64)
        self.peers[0] = self.shared.ctypes.data
        self.granules = zeros(4096, np.uint16)
        self.regions = zeros(256, layout.REGION)
        self.region_count = 1
        self.keep: list[np.ndarray] = []
        self.next = symbols.arrays_start
        self.parameters = parameter_bytes = zeros(max(symbols.parameter_bytes, 1))
        for place in symbols.places.values():
            if place.variable.space in ("global", "const"):
                memory = zeros(place.variable.size or 1)
                if place.variable.initial:
                    memory[: len(place.variable.initial)] = np.frombuffer(place.variable.initial, np.uint8)
                self.map(place.address, memory, place.variable.space == "global")
        for value, variable in zip(parameters, code.program.kernel.parameters, strict=True):
            at = symbols.places[variable.name].address - layout.PARAMETERS
            parameter_bytes[at : at + (variable.size or 0)] = np.frombuffer(
                self.parameter(value, variable.size or 0), np.uint8
            )
        self.map(layout.PARAMETERS, parameter_bytes, False)
        launch, cta = self.launch[0], self.cta[0]
        launch["granules"], launch["granule_count"] = self.granules.ctypes.data, len(self.granules)
        launch["regions"], launch["region_count"] = self.regions.ctypes.data, self.region_count
        launch["parameters"], launch["parameter_bytes"] = parameter_bytes.ctypes.data, len(parameter_bytes)
        launch["cta_count"], launch["thread_count"] = (ctaid + 1, 1, 1), (threads, 1, 1)
        launch["cluster_shape"], launch["cluster_count"] = (1, 1, 1), (ctaid + 1, 1, 1)
        cta["launch"], cta["shared"] = self.launch.ctypes.data, self.shared.ctypes.data
        cta["shared_end"], cta["peers"] = len(self.shared), self.peers.ctypes.data
        cta["id"] = (ctaid, 0, 0)
        cta["local"], cta["local_bytes"] = self.local.ctypes.data, symbols.local_bytes
        for index in range(warps):
            warp = self.warps[index]
            warp["cta"], warp["registers"] = self.cta.ctypes.data, self.registers[index].ctypes.data
            warp["index"] = index
            warp["tid"][0] = np.arange(32) + 32 * index
            warp["status"] = np.where(warp["tid"][0] < threads, layout.RUNNABLE, layout.EXITED)

    def parameter(self, value: object, size: int) -> bytes:
        if isinstance(value, np.ndarray):
            return self.array(value).to_bytes(8, "little")
        return value if isinstance(value, bytes) else int(value).to_bytes(size, "little", signed=int(value) < 0)

    def map(self, address: int, memory: np.ndarray, writable: bool) -> None:
        number = self.region_count
        self.region_count += 1
        self.regions[number] = (address, address + memory.nbytes, memory.ctypes.data, int(writable))
        first = (address - layout.GLOBAL_BASE) >> layout.GRANULE_SHIFT
        last = (address + max(memory.nbytes, 1) - 1 - layout.GLOBAL_BASE) >> layout.GRANULE_SHIFT
        self.granules[first : last + 1] = number
        self.keep.append(memory)

    def array(self, memory: np.ndarray, writable: bool = True) -> int:
        """Maps an array as global memory; gives its address."""
        address = self.next
        granule = 1 << layout.GRANULE_SHIFT
        self.next = (address + memory.nbytes + 2 * granule - 1) // granule * granule
        self.map(address, memory, writable)
        return address

    def run(self, warp: int = 0) -> int:
        """Runs a warp until it comes back for another reason than fuel; gives the exit code."""
        record = self.warps[warp]
        while True:
            record["fuel"] = self.fuel
            code = self.code.run(self.warps[warp : warp + 1].ctypes.data)
            if code != layout.FUEL:
                return code

    def lanes(self, register: str, warp: int = 0) -> np.ndarray:
        """A register's 32 lanes, as they lie in the register file."""
        slot = self.code.slots[register]
        return self.registers[warp][slot.offset :][: 32 * slot.dtype.itemsize].view(slot.dtype)


def launch(ptx: str, parameters: Sequence[object] = (), *, threads: int = 32, **options: int) -> Launch:
    """Compiles and runs a kernel's only CTA; all warps must run to their end."""
    made = Launch(compile_kernel(ptx), parameters, threads=threads, **options)
    for warp in range(len(made.warps)):
        code = made.run(warp)
        assert code == layout.ALL_STOPPED, (code, made.warps[warp])
    return made


def run(
    body: str,
    inputs: Mapping[str, np.ndarray],
    outputs: Mapping[str, str],
    registers: str = "",
) -> dict[str, np.ndarray]:
    """Runs instructions on one warp. inputs: register -> 32 values, as wide as the register (bool: a predicate).

    outputs: register -> PTX type (``u32``, ``f64``, ``pred``); they come back as arrays of that type (16-bit floats as
    uint16, predicates as bool). registers: further declarations.
    """
    arrays, loads, stores, declared = [], [], [], [registers]
    for i, (name, values) in enumerate(inputs.items()):
        values = np.asarray(values)
        if values.dtype == bool:
            arrays.append(np.ascontiguousarray(values, np.uint32))
            declared.append(f".reg .pred {name}; .reg .b32 %in{i};")
            loads.append(_move("ld", f"%in{i}", f"p{i}", 4) + f"setp.ne.u32 {name}, %in{i}, 0;")
        else:
            bytes = max(values.dtype.itemsize, 2)
            arrays.append(np.ascontiguousarray(values.view(f"u{values.dtype.itemsize}"), f"u{bytes}"))
            declared.append(f".reg .b{8 * bytes} {name};")
            loads.append(_move("ld", name, f"p{i}", bytes))
    results = []
    for i, (name, type) in enumerate(outputs.items(), len(inputs)):
        if type == "pred":
            results.append(np.zeros(32, np.uint32))
            if name not in inputs:
                declared.append(f".reg .pred {name};")
            declared.append(f".reg .b32 %out{i};")
            stores.append(f"selp.u32 %out{i}, 1, 0, {name};" + _move("st", f"%out{i}", f"p{i}", 4))
        else:
            bytes = _SIZES[type.lstrip("busfx")]
            results.append(np.zeros(32, f"u{bytes}"))
            if name not in inputs:
                declared.append(f".reg .b{8 * bytes} {name};")
            stores.append(_move("st", name, f"p{i}", bytes))
    count = len(arrays) + len(results)
    head = ", ".join(f".param .u64 p{i}" for i in range(count))
    text = f"""
.visible .entry k({head}) {{
.reg .b64 %at, %lane8; .reg .b32 %lane4;
{" ".join(declared)}
{" ".join(loads)}
{body}
{" ".join(stores)}
ret;
}}"""
    launch(text, [*arrays, *results])
    kinds = {"f32": np.float32, "f64": np.float64, "pred": bool}
    found = {}
    for (name, type), values in zip(outputs.items(), results, strict=True):
        if type == "pred":
            found[name] = values.astype(bool)
        elif type in kinds:
            found[name] = values.view(kinds[type])
        else:
            signed = type[0] == "s"
            found[name] = values.view(f"{'i' if signed else 'u'}{values.dtype.itemsize}")
    return found


def _move(op: str, register: str, parameter: str, bytes: int) -> str:
    """Loads or stores the lane's element of an array of the kernel's."""
    place = f"mov.u32 %lane4, %laneid; mad.wide.u32 %at, %lane4, {bytes}, %at;"
    access = (
        f"ld.global.b{8 * bytes} {register}, [%at];" if op == "ld" else f"st.global.b{8 * bytes} [%at], {register};"
    )
    return f"ld.param.u64 %at, [{parameter}]; {place} {access}\n"
