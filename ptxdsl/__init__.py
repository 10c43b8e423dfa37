"""Readable warp-specialised GPU kernels, compiled to PTX.

    import ptxdsl

    vectors = ptxdsl.load("vector_add.pdsl")
    vectors.add[(n + 255) // 256, 256](a, b, out, n)

load, loads        a Module from a file or from a text; its kernels are attributes
Kernel             kernel[grid, block](…) launches it; specialize, prepare, simulate, compile, occupancy
compile            Compiled: PTX, machine code and the earlier stages; needs no GPU
build              files that launch kernels without Python
autotune           Tuned: the fastest of many configurations
TensorMap          a tile of an array, for copies of the tensor memory accelerator (TMA)
to_device, donate  a DeviceArray, if no other library is in use; a JAX array that a kernel may write
Report, Limits     the result of a simulated run; its limits
CompileError, LaunchError, DeviceError
                   mistakes in a text, in a launch, in a running kernel: `diagnostics` has their places
CompileWarning     what the checker has found in a kernel that is launched
ptxdsl.torch       kernels as operators of PyTorch
%load_ext ptxdsl   kernels in notebook cells

Importing this package loads neither the compiler nor CUDA.
"""

from __future__ import annotations

from ptxdsl.version import __version__

TYPE_CHECKING = False  # the typing module costs 4 ms, and the command starts here
if TYPE_CHECKING:
    from typing import Any

    from ptxdsl.api.compile_warning import CompileWarning
    from ptxdsl.api.kernel import Kernel
    from ptxdsl.api.module import Module, build, compile, load, loads
    from ptxdsl.compiled import Compiled
    from ptxdsl.cuda.arrays import donate
    from ptxdsl.cuda.device_array import DeviceArray, to_device
    from ptxdsl.cuda.errors import DeviceError
    from ptxdsl.cuda.tensor_map import TensorMap
    from ptxdsl.diagnostics import CompileError, LaunchError
    from ptxdsl.sim.launch import Report
    from ptxdsl.sim.limits import Limits
    from ptxdsl.tuning.autotune import Tuned, autotune

__all__ = [
    "CompileError",
    "CompileWarning",
    "Compiled",
    "DeviceArray",
    "DeviceError",
    "Kernel",
    "LaunchError",
    "Limits",
    "Module",
    "Report",
    "TensorMap",
    "Tuned",
    "__version__",
    "autotune",
    "build",
    "compile",
    "donate",
    "load",
    "loads",
    "to_device",
]

_HOMES = {
    "load": "ptxdsl.api.module",
    "loads": "ptxdsl.api.module",
    "autotune": "ptxdsl.tuning.autotune",
    "Tuned": "ptxdsl.tuning.autotune",
    "build": "ptxdsl.api.module",
    "compile": "ptxdsl.api.module",
    "Module": "ptxdsl.api.module",
    "Compiled": "ptxdsl.compiled",
    "Kernel": "ptxdsl.api.kernel",
    "donate": "ptxdsl.cuda.arrays",
    "DeviceArray": "ptxdsl.cuda.device_array",
    "to_device": "ptxdsl.cuda.device_array",
    "LaunchError": "ptxdsl.diagnostics",
    "DeviceError": "ptxdsl.cuda.errors",
    "Report": "ptxdsl.sim.launch",
    "Limits": "ptxdsl.sim.limits",
    "TensorMap": "ptxdsl.cuda.tensor_map",
    "CompileError": "ptxdsl.diagnostics",
    "CompileWarning": "ptxdsl.api.compile_warning",
    # of IPython's %load_ext
    "load_ipython_extension": "ptxdsl.notebook",
    "unload_ipython_extension": "ptxdsl.notebook",
}
# Not in __all__: ``from ptxdsl import *`` must not hide PyTorch.
_MODULES = ("torch",)


def __getattr__(name: str) -> Any:
    home = f"ptxdsl.{name}" if name in _MODULES else _HOMES.get(name)
    if home is None:  # asked, too, for each module of the package that is imported from it
        raise AttributeError(f"module 'ptxdsl' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(home)
    if name in _MODULES:
        return module
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
