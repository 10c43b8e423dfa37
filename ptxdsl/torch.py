"""Kernels as operators of PyTorch, registered with `torch.library`: `torch.compile` keeps their calls in its graph.

    scale = ptxdsl.torch.custom_op(
        "mine::scale", module.scale, grid=lambda n: (n + 255) // 256, block=256,
        outputs={"res": lambda src: torch.empty_like(src)},
    )
    y = scale(x, x.numel(), 2.0)

PyTorch (2.4 or later) is imported where an operator is made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ptxdsl.api.kernel import Kernel
from ptxdsl.cuda.arguments import type_text
from ptxdsl.cuda.shape import block_of
from ptxdsl.diagnostics import launch_error
from ptxdsl.shown import shown
from ptxdsl.signature import KernelSignature, Param, PointerParam, ScalarParam

__all__ = ["custom_op"]

Values = dict[str, Any]  # of a call, by the names of the kernel's arguments


def custom_op(
    name: str,
    kernel: Kernel,
    *,
    grid: Any,
    block: Any = None,
    outputs: Mapping[str, Callable[..., Any]] | None = None,
    smem: Any = None,
    cluster: Any = None,
    cooperative: bool = False,
    pdl: bool = False,
    target: str | None = None,
    arch: str = "sm_90a",
) -> Any:
    """The kernel as the operator ``torch.ops.namespace.operator``; what is returned calls it, a ``CustomOpDef``.

    name: ``namespace::operator``; an operator of that name is replaced. kernel: with values for its comptime
    parameters. The operator takes the kernel's arguments in their order, tensors for pointers. A tensor behind a
    mutable pointer is declared as mutated, unless ``outputs`` names it: then the operator creates that tensor with the
    function given, for real tensors and for fake ones, and returns it (several as a tuple) instead of taking it.

    grid, block, cluster, smem: as for a launch, or functions of the call. block: None for that of
    ``@kernel(threads=…)``. Every function here takes those of the kernel's arguments that its own parameters name:
    ``grid=lambda n: n // 32``. target: as for a launch; ``sim`` takes CPU tensors. arch: a target for which the kernel
    is compiled to learn its signature; a launch compiles it for the device.

    Raises CompileError, LaunchError E0930 if PyTorch is missing and E0931 for what cannot be an operator. Gradients
    are added by the caller: ``operator.register_autograd``.
    """
    torch = _torch()
    if not isinstance(kernel, Kernel):
        raise TypeError(f"an operator is made of a kernel, not of {type(kernel).__name__}")
    _check_name(name)
    (signature,) = kernel.compile(arch).signatures.values()
    block = block_of(block, signature.block, signature.name)
    made = _functions(outputs or {}, signature)
    taken = [p for p in signature.params if p.name not in made]
    changed = [p.name for p in taken if isinstance(p, PointerParam) and p.mutable]
    makers = {n: _function(make, [p.name for p in taken], f"outputs['{n}']") for n, make in made.items()}
    everything = [p.name for p in signature.params]
    shape: list[Any] = [
        _function(value, everything, what) if callable(value) else value
        for what, value in (("grid", grid), ("block", block), ("smem", smem), ("cluster", cluster))
    ]

    def run(*arguments: Any) -> Any:
        values = dict(zip((p.name for p in taken), arguments, strict=True))
        results = _results(makers, values)
        blocks, threads, bytes_, together = (part(values) if callable(part) else part for part in shape)
        with _device(torch, values):
            kernel[blocks, threads](
                *(values[n] for n in everything),
                smem=bytes_, cluster=together, cooperative=cooperative, pdl=pdl, target=target,
            )  # fmt: skip
        return results

    def fake(*arguments: Any) -> Any:
        return _results(makers, dict(zip((p.name for p in taken), arguments, strict=True)))

    operator = torch.library.custom_op(name, run, mutates_args=changed, schema=_schema(taken, len(made)))
    operator.register_fake(fake)
    return operator


def _torch() -> Any:
    """PyTorch. Raises LaunchError E0930."""
    try:
        import torch
    except ImportError as problem:
        raise launch_error("E0930", f"PyTorch cannot be imported: {problem}", help="pip install torch") from None
    if not hasattr(torch.library, "custom_op"):
        raise launch_error("E0930", f"PyTorch {torch.__version__} has no torch.library.custom_op", help="2.4 has it")
    return torch


def _device(torch: Any, values: Values) -> AbstractContextManager[Any]:
    """As PyTorch's own operators, one runs on the device of its tensors, whichever is current."""
    devices = (value.device for value in values.values() if isinstance(value, torch.Tensor))
    found = next((device for device in devices if device.type == "cuda"), None)
    return nullcontext() if found is None else torch.cuda.device(found)


def _check_name(name: Any) -> None:
    parts = name.split("::") if isinstance(name, str) else ()
    if len(parts) != 2 or not all(part.isidentifier() and part.isascii() for part in parts):
        raise launch_error(
            "E0931", f"{shown(name)} is not an operator's name", help="write it as 'namespace::operator'"
        )


def _functions(outputs: Mapping[str, Any], signature: KernelSignature) -> dict[str, Callable[..., Any]]:
    """In the order of the kernel's parameters. Raises LaunchError E0931 for what the kernel does not write."""
    written = [p.name for p in signature.params if isinstance(p, PointerParam) and p.mutable]
    for name, function in outputs.items():
        if name not in written:
            raise launch_error(
                "E0931",
                f"kernel '{signature.name}' has no mutable pointer '{name}' to be an output",
                help=f"it has {', '.join(written)}" if written else "it has none at all",
            )
        if not callable(function):
            raise launch_error(
                "E0931",
                f"outputs['{name}'] is {type(function).__name__}, not a function that makes the tensor",
                help=f"for example {{'{name}': lambda src: torch.empty_like(src)}}, with src an argument of the kernel",
            )
    return {name: outputs[name] for name in written if name in outputs}


def _function(function: Callable[..., Any], names: Sequence[str], what: str) -> Callable[[Values], Any]:
    """Of a call's values. Raises LaunchError E0931 for a parameter that is none of ``names``."""
    try:
        wanted = list(inspect.signature(function).parameters)
    except ValueError:  # of a builtin
        wanted = ["?"]
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise launch_error(
            "E0931",
            f"the function for {what} has a parameter '{unknown[0]}', which is not an argument of the operator",
            help=f"name those it needs, as in `lambda {names[0]}: …`, of: {', '.join(names)}" if names else None,
        )
    return lambda values: function(**{name: values[name] for name in wanted})


def _results(makers: Mapping[str, Callable[[Values], Any]], values: Values) -> Any:
    """Makes the outputs, adds them to the values; what the operator returns."""
    made = {name: make(values) for name, make in makers.items()}
    values.update(made)
    return None if not made else tuple(made.values()) if len(made) > 1 else next(iter(made.values()))


def _schema(params: Sequence[Param], results: int) -> str:
    """In the language of PyTorch's schemas. Raises LaunchError E0931 for a parameter that has no type there."""
    arguments = ", ".join(f"{_type(param, place)} {param.name}" for place, param in enumerate(params))
    tensors = ", ".join(["Tensor"] * results)
    return f"({arguments}) -> {tensors if results == 1 else f'({tensors})'}"


def _type(param: Param, place: int) -> str:
    if isinstance(param, PointerParam):
        return f"Tensor(a{place}!)" if param.mutable else "Tensor"
    if isinstance(param, ScalarParam):
        return "bool" if param.dtype == "bool" else "float" if "float" in param.dtype else "SymInt"
    raise launch_error(
        "E0931",
        f"parameter '{param.name}' is {type_text(param)}, which operators of PyTorch do not take",
        help="launch the kernel in a function of your own under torch.library.custom_op",
    )
