"""A kernel of the Python API in the simulator: its arguments checked as for the card, its result a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack

from ptxdsl.artifact import Compiled
from ptxdsl.cuda.arrays import leaves
from ptxdsl.cuda.configuration import shape_of
from ptxdsl.cuda.errors import DeviceError
from ptxdsl.cuda.shape import FIRST_WITH_CLUSTERS, block_of, check_thread_count, dynamic_size
from ptxdsl.diagnostics import LaunchError, launch_error
from ptxdsl.shown import shown
from ptxdsl.sim.run_options import RunOptions
from ptxdsl.source import Span
from ptxdsl.targets import target

if TYPE_CHECKING:
    from ptxdsl.sim.launch import Report


def simulate_kernel(
    compiled: Compiled,
    spans: Mapping[str, Span],
    arguments: Sequence[Any],
    *,
    grid: Any = 1,
    block: Any = None,
    cluster: Any = None,
    smem: int | None = None,
    cooperative: bool = False,
    pdl: bool = False,
    ptx_file: str | None = None,
    **how: Unpack[RunOptions],
) -> Report:
    """The report of a run of the only kernel of ``compiled``. Raises LaunchError and CompileError before it starts.

    smem: bytes of dynamic shared memory. pdl: the kernel in front has always ended. ptx_file: the name of the text if
    it is PTX itself; lines in messages are then its own. how: ``RunOptions``.
    """
    from ptxdsl.cuda.host_arguments import HostPacker
    from ptxdsl.sim.launch import simulate

    signature = next(iter(compiled.signatures.values()))
    if pdl and target(compiled.options.arch).capability < 10 * FIRST_WITH_CLUSTERS[0]:
        message = f"pdl=True needs compute capability 9.0 or later; the kernel is compiled for {compiled.options.arch}"
        raise launch_error("E0918", message, help='simulate it with arch="sm_90" or later, or leave pdl out')
    blocks = cluster if cluster is not None else signature.cluster
    shape = shape_of(grid, block_of(block, signature.block, signature.name), smem, blocks, cooperative, pdl)
    check_thread_count(signature, shape.block)
    return simulate(
        compiled.ptx,
        signature.name,
        grid=shape.grid,
        block=shape.block,
        cluster=shape.cluster,
        shared_bytes=dynamic_size(signature, shape.smem),
        cooperative=shape.cooperative,
        arguments=HostPacker(signature, spans).bind(arguments),
        names=signature.leaves,
        line_map=compiled.line_map if ptx_file is None else None,
        text_name=ptx_file or "<ptx>",
        shared_names=compiled.shared_names,
        **how,
    )


class Kernel(Protocol):
    """A kernel of the Python API."""

    @property
    def spans(self) -> Mapping[str, Span]: ...
    def compile(self, arch: str) -> Compiled: ...


class LaunchShape(TypedDict, total=False):
    """The parameters of ``Kernel.simulate`` of this name. smem: bytes of dynamic shared memory."""

    grid: Any
    block: Any
    cluster: Any
    smem: int | None
    cooperative: bool
    pdl: bool


def simulation(
    kernel: Kernel | Compiled, arguments: Sequence[Any], arch: str, **shape: Unpack[LaunchShape]
) -> Callable[..., Report]:
    """A launch to be simulated: what it gives is called with ``RunOptions``.

    kernel: of the Python API, compiled for ``arch``, or what a compilation gave, with a single kernel.
    """
    compiled = kernel if isinstance(kernel, Compiled) else kernel.compile(arch)
    spans = {} if isinstance(kernel, Compiled) else kernel.spans
    return partial(simulate_kernel, compiled, spans, arguments, **shape)


def raise_unless_finished(report: Report) -> None:
    """Raises DeviceError with the report's diagnostics where the kernel did not run to its end, KeyboardInterrupt with
    its words where Ctrl-C has ended it: whoever handles errors of launches does not go on."""
    if report.status == "interrupted":
        raise KeyboardInterrupt(report.render())
    if not report.finished:
        raise DeviceError(report.diagnostics)


def runs_in_simulator(target: str | None, arguments: Sequence[Any], has_driver: bool) -> bool:
    """Whether a launch is simulated: where that is asked for, and by default where no array lies on a device and no GPU
    can be used. has_driver: there is one for sure. Raises LaunchError E0908 for an unknown target."""
    if not isinstance(target, str | None) or target not in (None, "gpu", "sim"):
        raise launch_error("E0908", f"target={shown(target)} is not 'gpu', 'sim' or None")
    if target is not None:
        return target == "sim"
    if has_driver:
        return False
    values = list(leaves(arguments))
    if any(map(_is_array, values)) and not any(map(_lies_on_host, values)):
        return False
    from ptxdsl.cuda.driver import current_driver

    try:
        current_driver()
    except LaunchError:
        return True
    return False


def _is_array(value: Any) -> bool:
    """Of any library, or a tensor map on one."""
    array = getattr(value, "array", value)
    return any(hasattr(array, name) for name in ("data_ptr", "__cuda_array_interface__", "__dlpack__"))


def _lies_on_host(value: Any) -> bool:
    """Of an array; NumPy is loaded already where one of its arrays is given."""
    kind = type(value)
    if not hasattr(kind, "__array_interface__") and not hasattr(kind, "data_ptr") and not hasattr(value, "encode"):
        return False
    from ptxdsl.cuda.host_arguments import host_memory

    return host_memory(getattr(value, "array", value)) is not None
