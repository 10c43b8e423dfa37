"""The Python door: load text, pick a kernel, launch it.

The compiler is imported where there is something to compile: `import ptxdsl` loads none of it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from ptxdsl.artifact import Compiled
from ptxdsl.cuda.arrays import view
from ptxdsl.cuda.driver import Device, Dim3, Driver, current_driver
from ptxdsl.cuda.errors import launch_error
from ptxdsl.cuda.launch import LoadedKernel
from ptxdsl.cuda.shape import dimensions
from ptxdsl.options import Options, WaitForm
from ptxdsl.record import dataclass, replace
from ptxdsl.simulated import raise_unless_finished, runs_in_simulator, simulate_kernel
from ptxdsl.source import Source, Span

if TYPE_CHECKING:
    from ptxdsl.sim.launch import Report
    from ptxdsl.sim.limits import Limits
    from ptxdsl.sim.schedule import Schedule
    from ptxdsl.syntax import ast

Constants = tuple[tuple[str, str], ...]

# Characters. A path that is longer than file systems let a name be, and names no file, is likely a program's text.
_LONGEST_NAME = 255
_SHOWN_NAME = 40  # of such a one in messages


def load(
    path: str | os.PathLike[str],
    *,
    wait: WaitForm = "try",
    contract: bool = True,
    lineinfo: bool = False,
    ring_unroll: bool = True,
    ptx_version: tuple[int, int] | None = None,
) -> Module:
    """The kernels of a ``.pdsl`` or ``.mojo`` file. The keywords are the compiler's options (``Options``).

    Raises CompileError where the file cannot be read, TypeError for what is no path. Its text is parsed when a kernel
    is first asked for.
    """
    from ptxdsl.imports import read_file

    options = Options("sm_90a", ptx_version, wait, contract, lineinfo, ring_unroll)
    return Module(read_file(_path(path)), options)


def loads(
    text: str,
    name: str = "<text>",
    *,
    wait: WaitForm = "try",
    contract: bool = True,
    lineinfo: bool = False,
    ring_unroll: bool = True,
    ptx_version: tuple[int, int] | None = None,
) -> Module:
    """The kernels of a text; ``name`` is what diagnostics call it. Otherwise as ``load``."""
    from ptxdsl.imports import source_of

    options = Options("sm_90a", ptx_version, wait, contract, lineinfo, ring_unroll)
    return Module(source_of(_text(text).encode("utf-8", "surrogatepass"), name), options)


def compile(
    source: str | os.PathLike[str] | Module,
    *,
    kernel: str | None = None,
    arch: str = "sm_90a",
    constants: Mapping[str, Any] | None = None,
) -> Compiled:
    """Compiles a file, or a module of ``loads``, to PTX; needs no GPU.

    kernel: one def, or None for all ``@kernel`` ones. arch: a target's name (``ptxdsl targets``). constants: values of
    the kernel's comptime parameters, as in ``Kernel.specialize``. Raises CompileError, and TypeError as ``load`` does.
    """
    module = source if isinstance(source, Module) else load(source)
    return module._program.compile(kernel, _constants(constants or {}), arch)


class Program:
    """What a module and its kernels share: the text, how it is compiled, and the driver (None: the machine's own)."""

    def __init__(self, source: Source, options: Options, driver: Driver | None) -> None:
        self.source = source
        self.options = options
        self.driver = driver
        self.lock = threading.RLock()

    def definitions(self) -> dict[str, ast.FunctionDef]:
        from ptxdsl.imports import parse_once
        from ptxdsl.syntax import ast

        return {d.name: d for d in parse_once(self.source).body if isinstance(d, ast.FunctionDef)}

    def compile(self, kernel: str | None, constants: Constants, arch: str) -> Compiled:
        """constants: expression texts."""
        from ptxdsl.driver import compile_source

        options = replace(self.options, arch=arch)
        made = compile_source(self.source, kernel=kernel, constants=dict(constants), options=options)
        assert isinstance(made, Compiled)
        return made


class Module:
    """The kernels of one text, as attributes and items; ``dir`` lists them."""

    def __init__(self, source: Source, options: Options | None = None, driver: Driver | None = None) -> None:
        self._program = Program(source, options or Options(), driver)
        self._kernels: dict[str, Kernel] = {}

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the ``@kernel`` defs, or of all defs where none is marked."""
        defs = self._program.definitions()
        marked = tuple(n for n, d in defs.items() if any(decorator.name == "kernel" for decorator in d.decorators))
        return marked or tuple(defs)

    def __getitem__(self, name: str) -> Kernel:
        """A kernel by its name. Raises LaunchError E0913 where the text has no such def."""
        defs = self._program.definitions()
        if name not in defs:
            close = get_close_matches(name, defs, n=1)
            known = f"its kernels: {', '.join(self.kernels)}" if defs else "it has no def at all"
            raise launch_error(
                "E0913",
                f"'{self._program.source.name}' has no kernel '{name}'",
                help=f"did you mean '{close[0]}'?" if close else known,
            )
        return self._kernel(name)

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in self._program.definitions():
            close = get_close_matches(name, self._program.definitions(), n=1)
            hint = f"; did you mean '{close[0]}'?" if close else ""
            raise AttributeError(f"'{self._program.source.name}' has no kernel '{name}'{hint}")
        return self._kernel(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._program.definitions()]

    def __repr__(self) -> str:
        return f"<ptxdsl module '{self._program.source.name}': {', '.join(self.kernels) or 'no kernels'}>"

    def _kernel(self, name: str) -> Kernel:
        with self._program.lock:
            if name not in self._kernels:
                self._kernels[name] = Kernel(self, self._program, name, ())
            return self._kernels[name]


class Kernel:
    """One kernel of a module. ``kernel[grid, block](arguments…)`` launches it on the current device.

    It is compiled for the device and loaded when it is first launched, once a context.
    """

    def __init__(
        self, module: Module, program: Program, name: str, constants: Constants,
        family: dict[Constants, Kernel] | None = None,
    ) -> None:  # fmt: skip
        self.module = module
        self.name = name
        self._program = program
        self._constants = constants
        self._family = {constants: self} if family is None else family  # the same def with other constants
        self._compiled: dict[str, Compiled] = {}
        self._loaded: dict[int, LoadedKernel] = {}

    def specialize(self, **constants: Any) -> Kernel:
        """The kernel with values for its comptime parameters: numbers, bools, and texts of constant expressions.

        ``kernel.specialize(stages=4, dtype="DType.bfloat16")``; a NumPy or PyTorch dtype stands for its DType. Equal
        values give the same object, compiled once.
        """
        merged = {**dict(self._constants), **dict(_constants(constants))}
        wanted = tuple(sorted(merged.items()))
        with self._program.lock:
            if wanted not in self._family:
                self._family[wanted] = Kernel(self.module, self._program, self.name, wanted, self._family)
            return self._family[wanted]

    def compile(self, arch: str = "sm_90a") -> Compiled:
        """Its PTX and signature; needs no GPU. Raises CompileError."""
        with self._program.lock:
            if arch not in self._compiled:
                self._compiled[arch] = self._program.compile(self.name, self._constants, arch)
            return self._compiled[arch]

    def simulate(
        self,
        *arguments: Any,
        grid: Any = 1,
        block: Any = None,
        cluster: Any = None,
        smem: int | None = None,
        arch: str = "sm_90a",
        schedule: Schedule | str | None = None,
        limits: Limits | None = None,
        trace: bool = False,
        record: bool = False,
    ) -> Report:
        """Runs the kernel's PTX in the simulator, on this machine's processor; arrays are NumPy's, changed in place.

        block: by default what ``@kernel(threads=…)`` says. cluster: blocks a cluster, by default the kernel's own.
        schedule: ``round-robin``, ``random:SEED``, ``slow:NAME`` or a recorded one. trace: keep the events of a
        timeline; record: keep the schedule that was taken. What goes wrong in the kernel is in the report
        (``status``, ``diagnostics``); raises LaunchError and CompileError for what could not be started.
        """
        return simulate_kernel(
            self.compile(arch), self._spans(), arguments, grid=grid, block=block, cluster=cluster, smem=smem,
            schedule=schedule, limits=limits, trace=trace, record=record,
        )  # fmt: skip

    def _spans(self) -> dict[str, Span]:
        return {a.name: a.span for a in self._program.definitions()[self.name].args}

    def __getitem__(self, shape: Any) -> Launcher:
        """grid and block: ints or tuples of up to three."""
        if not isinstance(shape, tuple) or len(shape) != 2:
            raise launch_error(
                "E0908",
                f"kernel '{self.name}' is launched with a grid and a block",
                help=f"{self.name}[grid, block](…): each is a number or a tuple, as in {self.name}[(4, 2), 128](…)",
            )
        return Launcher(self, dimensions(shape[0], "grid"), dimensions(shape[1], "block"))

    def __call__(self, *arguments: Any, **keywords: Any) -> None:
        raise launch_error(
            "E0908", f"kernel '{self.name}' needs a grid and a block", help=f"write {self.name}[grid, block](…)"
        )

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={text}" for name, text in self._constants)
        return f"<ptxdsl kernel '{self.name}{f'[{values}]' if values else ''}' of '{self._program.source.name}'>"

    def _load(self, arguments: tuple[Any, ...]) -> LoadedKernel:
        driver = self._program.driver or current_driver()
        context, device = driver.context(_first_ordinal(arguments))
        loaded = self._loaded.get(context)
        if loaded is None:
            with self._program.lock:
                loaded = self._loaded.get(context)
                if loaded is None:
                    compiled = self.compile(device_arch(device))
                    signature = next(iter(compiled.signatures.values()))
                    loaded = LoadedKernel(driver, device, compiled, signature, self._spans())
                    self._loaded[context] = loaded
        return loaded


@dataclass(frozen=True)
class Launcher:
    """A kernel with its launch shape; calling it launches."""

    kernel: Kernel
    grid: Dim3
    block: Dim3

    def __call__(
        self, *arguments: Any, smem: int | None = None, stream: Any = None, target: str | None = None
    ) -> None:
        """Starts the kernel and returns at once; in the simulator, runs it to its end.

        arguments: arrays of PyTorch, CuPy, Numba or another library with ``__cuda_array_interface__`` for pointers,
        numbers for scalars, tuples or dicts of their fields for structs. smem: dynamic shared memory in bytes. stream:
        None is the current stream of the arrays' library. target: ``gpu``, ``sim``, or None: the simulator if the
        arrays are NumPy's and no GPU can be used. Raises CompileError, LaunchError, and DeviceError for a kernel that
        fails in the simulator.
        """
        if runs_in_simulator(target, arguments, self.kernel._program.driver is not None):
            compiled = self.kernel.compile()
            spans = self.kernel._spans()
            raise_unless_finished(
                simulate_kernel(compiled, spans, arguments, grid=self.grid, block=self.block, smem=smem)
            )
            return
        self.kernel._load(arguments).launch(self.grid, self.block, arguments, smem, stream)


def device_arch(device: Device) -> str:
    """The target to compile for: the device's own with all its features, else the nearest older of its family.

    Raises LaunchError E0902 for a device that no target fits.
    """
    from ptxdsl.targets import TARGETS

    major, minor = device.capability
    for exact in (f"sm_{major}{minor}a", f"sm_{major}{minor}"):
        if exact in TARGETS:
            return exact
    older = [t for t in TARGETS.values() if t.suffix != "a" and 10 * major <= t.capability < 10 * major + minor]
    if not older:
        raise launch_error("E0902", f"{device} is not supported", help=f"the targets are {', '.join(TARGETS)}")
    return max(older, key=lambda t: (t.capability, t.suffix)).name


def _first_ordinal(arguments: tuple[Any, ...]) -> int | None:
    """The device of the first array, for a thread that has no current context yet."""
    for value in arguments:
        try:
            array = view(value)
        except (TypeError, AttributeError, KeyError):  # said properly when the arguments are checked
            continue
        if array is not None and array.ordinal is not None:
            return array.ordinal
    return None


def _text(value: Any) -> str:
    """Raises TypeError for what is no text."""
    if not isinstance(value, str):
        hint = ": decode it first" if isinstance(value, bytes | bytearray) else ""
        raise TypeError(f"the text of a program is a str, not {type(value).__name__}{hint}")
    return value


def _path(value: Any) -> str:
    """A path as a text. Raises TypeError for what is none, CompileError E1001 for the text of a program."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"the path of a program is a str or a path, not {type(value).__name__}")
    path = os.fsdecode(value)
    if ("\n" in path or len(path) > _LONGEST_NAME) and not os.path.exists(path):
        from ptxdsl.diagnostics import error

        start = next(iter(path.strip().splitlines()), "")[:_SHOWN_NAME]
        help = "if this is the text of a program, use ptxdsl.loads(text)"
        raise error("E1001", f"there is no file of the name '{start}…' ({len(path)} characters)", None, help=help)
    return path


def _constants(values: Mapping[str, Any]) -> Constants:
    return tuple(sorted((name, _expression(name, value)) for name, value in values.items()))


def _expression(name: str, value: Any) -> str:
    """The expression text of a comptime value. Raises LaunchError E0913."""
    if isinstance(value, str):
        return value
    kind = type(value)
    if isinstance(value, bool | int | float):
        return repr(value)
    if kind.__module__.partition(".")[0] in ("numpy", "ml_dtypes", "torch"):
        if "dtype" in kind.__name__.lower():  # numpy.dtype, numpy.dtypes.Float32DType, torch.dtype
            return f"DType.{str(value).removeprefix('torch.')}"
        if hasattr(value, "item"):
            return repr(value.item())
    raise launch_error(
        "E0913",
        f"parameter '{name}' cannot be given as {kind.__name__} {value!r}",
        help="give a number, a bool, a dtype, or the text of a constant expression",
    )
