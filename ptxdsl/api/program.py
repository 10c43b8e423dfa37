"""What a module and its kernels share: the text, how it is compiled, and the driver."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

from ptxdsl.compiled import Compiled, Constants
from ptxdsl.cuda.driver_interface import Device, Driver
from ptxdsl.cuda.errors import DriverError, forked
from ptxdsl.diagnostics import launch_error
from ptxdsl.options import Options
from ptxdsl.record import replace
from ptxdsl.source import Source, Span

if TYPE_CHECKING:
    from ptxdsl.syntax import ast


class Program:
    """driver: None for the machine's own. It does not change: a module that is reloaded gets another one."""

    def __init__(self, source: Source, options: Options, driver: Driver | None) -> None:
        self.source = source
        self.options = options
        self.driver = driver
        self.lock = threading.RLock()

    def definitions(self) -> dict[str, ast.FunctionDef]:
        """Raises CompileError where the text cannot be parsed."""
        from ptxdsl.imports import parse_once
        from ptxdsl.syntax import ast

        return {d.name: d for d in parse_once(self.source).body if isinstance(d, ast.FunctionDef)}

    def imports(self, name: str) -> str | None:
        """The module, as it is written, from which the text imports a name; None where it does not."""
        from ptxdsl.imports import parse_once
        from ptxdsl.syntax import ast

        for node in parse_once(self.source).body:
            if isinstance(node, ast.Import) and any((item.alias or item.name) == name for item in node.names or ()):
                return "." * node.level + node.module
        return None

    def seems_to_define(self, name: str) -> bool:
        """Whether a line of the text begins a def of this name: it then is one, unless the line lies in a string."""
        return re.search(rf"^def[ \t]+{re.escape(name)}\b", self.source.text, re.MULTILINE) is not None

    def spans(self, kernel: str) -> dict[str, Span]:
        """Where the parameters of a def are declared."""
        definition = self.definitions().get(kernel)
        return {} if definition is None else {a.name: a.span for a in definition.args}

    def compile(self, kernel: str | None, constants: Constants, arch: str) -> Compiled:
        """constants: expression texts. Raises CompileError, and TypeError for names that are none."""
        from ptxdsl.kernel_cache import compile_kernel

        return compile_kernel(self.source, kernel, constants, self._options(kernel, arch))

    def known(self, kernel: str | None, constants: Constants, arch: str) -> Compiled | None:
        """What ``compile`` would find in the cache."""
        from ptxdsl.kernel_cache import known_kernel

        return known_kernel(self.source, kernel, constants, self._options(kernel, arch))

    def _options(self, kernel: str | None, arch: str) -> Options:
        for what, given in (("a kernel", "" if kernel is None else kernel), ("a target", arch)):
            if not isinstance(given, str):
                raise TypeError(f"the name of {what} is a str, not {type(given).__name__}")
        return replace(self.options, arch=arch)


def device_in_use(driver: Driver, ordinal: int | None = None) -> Device:
    """The device of the thread's current context; in a thread without one, ``ordinal``'s (or 0's) is made current.

    Raises LaunchError E0912 where that cannot be, E0914 in a fork of a process that has used CUDA.
    """
    try:
        return driver.context(ordinal)[1]
    except DriverError as failure:
        if failure.result == "CUDA_ERROR_NOT_INITIALIZED":
            raise forked() from None
        raise launch_error("E0912", f"there is no CUDA context to launch in: {failure.words}") from None


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
