"""A kernel of the Python API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ptxdsl.api.by_name import in_order
from ptxdsl.api.compile_warning import warn_of
from ptxdsl.api.constant_texts import constants as constant_texts
from ptxdsl.api.launcher import Launcher
from ptxdsl.api.program import Program, device_arch, device_in_use
from ptxdsl.compiled import Compiled, Constants
from ptxdsl.cuda.arrays import device_of, leaves
from ptxdsl.cuda.configuration import shape_of
from ptxdsl.cuda.driver import current_driver
from ptxdsl.cuda.launch import LoadedKernel
from ptxdsl.cuda.shape import block_of
from ptxdsl.diagnostics import launch_error
from ptxdsl.source import Span

if TYPE_CHECKING:
    from ptxdsl.api.module import Module
    from ptxdsl.cuda.occupancy import Occupancy
    from ptxdsl.cuda.prepared import Prepared
    from ptxdsl.sim.launch import Report
    from ptxdsl.sim.limits import Limits
    from ptxdsl.sim.machine.schedule import Schedule

_MOST_LAUNCHERS = 256  # grids and blocks of a kernel that are kept


class Kernel:
    """One kernel of a module. ``kernel[grid, block](arguments…)`` launches it on the current device.

    The first launch on a device compiles and loads it. ``specialize`` gives values to its comptime parameters,
    ``prepare`` binds arguments for fast launches, ``simulate`` runs it on the CPU, ``compile`` returns its PTX,
    ``occupancy`` says how much of the device it fills, ``unload`` removes it from the device.
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
        self._warned: set[str] = set()  # the targets whose warnings have been told
        self._loaded: dict[int, LoadedKernel] = {}
        self._launchers: dict[tuple[Any, ...], Launcher] = {}
        self._parameters: tuple[tuple[str, ...], tuple[str, ...]] | None = None  # names: run-time, compile-time

    def specialize(self, **constants: Any) -> Kernel:
        """The kernel with values for its comptime parameters: numbers, bools, and texts of constant expressions.

        ``kernel.specialize(stages=4, dtype="DType.bfloat16")``; a NumPy or PyTorch dtype stands for its DType. Equal
        values return the same object, compiled once. Raises LaunchError E0913 for any other value.
        """
        merged = {**dict(self._constants), **dict(constant_texts(constants))}
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

    def _to_run(self, arch: str) -> Compiled:
        """Compiled; what the compilation warns of is told once."""
        compiled = self.compile(arch)
        if arch not in self._warned:
            self._warned.add(arch)
            warn_of(compiled)
        return compiled

    def compiled_before(self, arch: str) -> bool:
        """Whether ``compile`` has it already, of this process or of the cache."""
        if arch not in self._compiled:
            known = self._program.known(self.name, self._constants, arch)
            if known is not None:
                self.adopt(known)
        return arch in self._compiled

    def adopt(self, compiled: Compiled) -> None:
        """Takes what another process has compiled of this very kernel, for the target that it was compiled for."""
        with self._program.lock:
            self._compiled.setdefault(compiled.options.arch, compiled)

    def __getitem__(self, shape: Any) -> Launcher:
        """The kernel with a grid of blocks and a block of threads, ints or tuples of up to three; calling it launches.

        ``kernel[grid, block](arguments…, smem=None, stream=None, cluster=None, cooperative=False, pdl=False,
        target=None, timeout=None)``: ``help(kernel[1, 1])`` says what each is; arguments may also be given by the
        names of their parameters. Raises LaunchError E0908.
        """
        try:
            known = self._launchers.get(shape)
            # True and 1.0 equal 1 and are none: only the very kinds of number that were checked before
            if known is not None and (known.given is shape or _plain(shape)):
                return known
        except TypeError:  # a list
            pass
        return self._launcher(shape)

    def _launcher(self, shape: Any) -> Launcher:
        if not isinstance(shape, tuple) or len(shape) != 2:
            raise launch_error(
                "E0908",
                f"kernel '{self.name}' is launched with a grid and a block",
                help=f"{self.name}[grid, block](…): each is a number or a tuple, as in {self.name}[(4, 2), 128](…)",
            )
        made = Launcher(self, shape)
        if _plain(shape):
            if len(self._launchers) >= _MOST_LAUNCHERS:
                self._launchers.clear()
            self._launchers[shape] = made
        return made

    def __call__(self, *arguments: Any, **keywords: Any) -> None:
        """Raises LaunchError E0908: a launch has a grid and a block, ``kernel[grid, block](arguments…)``."""
        raise launch_error(
            "E0908", f"kernel '{self.name}' needs a grid and a block", help=f"write {self.name}[grid, block](…)"
        )

    def prepare(
        self, grid: Any, block: Any, *arguments: Any, smem: int | None = None, cluster: Any = None,
        cooperative: bool = False, pdl: bool = False, stream: Any = None, **named: Any,
    ) -> Prepared:  # fmt: skip
        """Checks a launch and binds its arguments: ``go = kernel.prepare(grid, block, a, b, n)``, then ``go()``.

        The keywords are those of a launch (``Launcher.__call__``). Raises CompileError and LaunchError.
        """
        from ptxdsl.cuda.prepared import Prepared

        arguments = self._in_order(arguments, named)
        loaded = self.load(arguments)
        plan = loaded.plan(shape_of(grid, block, smem, cluster, cooperative, pdl))
        return Prepared(loaded, plan, arguments, stream)

    def occupancy(self, block: Any = None, *, smem: int | None = None, cluster: Any = None) -> Occupancy:
        """How much of the current device the kernel fills.

        block: threads, by default those of ``@kernel(threads=…)``. smem: dynamic shared memory in bytes. Raises
        CompileError and LaunchError like a launch of that shape.
        """
        from ptxdsl.cuda.occupancy import occupancy

        loaded = self.load(())
        block = block_of(block, loaded.signature.block, self.name)
        grid = loaded.signature.cluster or 1
        return occupancy(loaded, shape_of(grid if cluster is None else cluster, block, smem, cluster))

    def simulate(
        self,
        *arguments: Any,
        grid: Any = 1,
        block: Any = None,
        cluster: Any = None,
        smem: int | None = None,
        cooperative: bool = False,
        pdl: bool = False,
        arch: str = "sm_90a",
        schedule: Schedule | str | None = None,
        limits: Limits | None = None,
        trace: bool = False,
        record: bool = False,
        **named: Any,
    ) -> Report:
        """Runs the kernel's PTX in the simulator, on the CPU; arrays are NumPy's, changed in place.

        block: by default that of ``@kernel(threads=…)``. cluster: blocks per cluster, by default the kernel's own.
        cooperative: all blocks begin at once. pdl: accepted, but earlier launches have always ended. schedule:
        ``round-robin``, ``random:SEED``, ``slow:NAME`` or a recorded one. trace: keep the events of a timeline; record:
        keep the schedule that was followed. named: arguments by their parameters' names. What goes wrong in the kernel
        is in the report (``status``, ``diagnostics``); raises LaunchError and CompileError if the kernel cannot be
        started.
        """
        from ptxdsl.cuda.simulated import simulate_kernel

        given = self._in_order(arguments, named)
        return simulate_kernel(
            self._to_run(arch), self.spans, given, grid=grid, block=block, cluster=cluster, smem=smem,
            cooperative=cooperative, pdl=pdl, schedule=schedule, limits=limits, trace=trace, record=record,
        )  # fmt: skip

    def _in_order(self, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """All arguments of a launch that gives some by the names of their parameters. Raises LaunchError E0903."""
        if not named:
            return arguments
        if self._parameters is None:
            definition = self._program.definitions()[self.name]
            self._parameters = tuple(a.name for a in definition.args), tuple(p.name for p in definition.params)
        return in_order(self.name, *self._parameters, arguments, named)

    def load(self, arguments: Sequence[Any] = ()) -> LoadedKernel:
        """The kernel on the current device (the first array's where the thread has none yet), loaded once.

        Raises CompileError, and LaunchError where there is no GPU or the driver refuses the code.
        """
        driver = self._program.driver or current_driver()
        device = device_in_use(driver, _first_ordinal(arguments))
        loaded = self._loaded.get(device.ordinal)
        if loaded is None:
            with self._program.lock:
                loaded = self._loaded.get(device.ordinal)
                if loaded is None:
                    compiled = self._to_run(device_arch(device))
                    signature = next(iter(compiled.signatures.values()))
                    loaded = LoadedKernel(driver, device, compiled, signature, self.spans)
                    self._loaded[device.ordinal] = loaded
        return loaded

    def unload(self) -> None:
        """Removes its code from the devices: now, after waiting for what they run, or once the last launcher and
        prepared launch of it are gone. The next launch loads it again.

        A CUDA graph that has captured a launch of it must not run after that.
        """
        with self._program.lock:
            loaded, self._loaded = self._loaded, {}
            self._launchers.clear()
        for kernel in loaded.values():
            kernel.release()

    @property
    def spans(self) -> Mapping[str, Span]:
        """Where the parameters are declared; the text is parsed for it when a message needs it."""
        return _Spans(self._program, self.name)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={text}" for name, text in self._constants)
        return f"<ptxdsl kernel '{self.name}{f'[{values}]' if values else ''}' of '{self._program.source.name}'>"

    def __reduce__(self) -> Any:
        """For processes that are spawned: the text goes over, and is compiled there or found in the cache."""
        return _rebuilt, (self.module, self.name, self._constants)


class _Spans(Mapping[str, Span]):
    """Parsed when looked at: a kernel that came from the cache may never need it."""

    def __init__(self, program: Program, kernel: str) -> None:
        self._program, self._kernel = program, kernel

    def __getitem__(self, name: str) -> Span:
        return self._program.spans(self._kernel)[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._program.spans(self._kernel))

    def __len__(self) -> int:
        return len(self._program.spans(self._kernel))


def _plain(shape: Any) -> bool:
    """Whether a shape is two ints or tuples of ints, of these very types."""
    if shape.__class__ is not tuple or len(shape) != 2:
        return False
    for part in shape:
        if part.__class__ is not int and not (
            part.__class__ is tuple and all(number.__class__ is int for number in part)
        ):
            return False
    return True


def _rebuilt(module: Module, name: str, constants: Constants) -> Kernel:
    return module[name].specialize(**dict(constants))


def _first_ordinal(arguments: Sequence[Any]) -> int | None:
    """The device of the first array, for a thread that has no current context yet."""
    for value in leaves(arguments):
        try:
            ordinal = device_of(value)
        except Exception:  # whatever a library raises: said properly when the arguments are checked
            continue
        if ordinal is not None:
            return ordinal
    return None
