"""What a result is the result of, as a digest: the same task need not be measured again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ptxdsl.api.kernel import Kernel
from ptxdsl.cuda.arrays import view
from ptxdsl.diagnostics import CompileError
from ptxdsl.files.digest import digest
from ptxdsl.imports import Loader, module_of_name, parse_once
from ptxdsl.source import Source
from ptxdsl.syntax import ast
from ptxdsl.tuning.space import Candidate
from ptxdsl.version import __version__


def context(kernel: Kernel, place: str, arch: str, arguments: Any, problem: Any) -> str:
    """Of all configurations: the compiler's version, the texts, options, where it runs, the sizes of the arguments.

    arguments: a sequence, which is described; of a function nothing is known but what ``problem`` says.
    """
    program = kernel._program
    described = "" if callable(arguments) else repr([_described(value) for value in arguments])
    parts = [__version__, kernel.name, repr(program.options), place, arch, described, repr(problem)]
    parts += [text for source in _texts(program.source, program.options.include) for text in (source.name, source.text)]
    return digest("\0".join(parts).encode("utf-8", "surrogatepass"))


def task(of: str, candidate: Candidate, settings: Sequence[Any]) -> str:
    """One configuration. of: what ``context`` gave; settings: how it is measured."""
    launch = sorted((name, repr(value)) for name, value in candidate.launch.items())
    return digest(repr((of, candidate.kernel._constants, launch, tuple(settings))).encode())


def _texts(source: Source, include: tuple[str, ...]) -> list[Source]:
    """The text and those that it imports, of the standard library not: that is the compiler's."""
    loader, found = Loader(), [source]
    loader.begin(source, include)
    for known in found:  # grows
        try:
            imports = [node for node in parse_once(known).body if isinstance(node, ast.Import)]
        except CompileError:  # said where it is compiled
            continue
        for node in imports:
            for module in ("." * node.level + node.module, *(module_of_name(node, n.name) for n in node.names or ())):
                with suppress(CompileError):  # of a module that is none
                    loader.file_module(known, module, node.span)
        found += [s for s in loader.sources if all((s.name, s.text) != (f.name, f.text) for f in found)]
    return found


def _described(value: Any) -> Any:
    """Sizes and types of arrays, values of numbers."""
    if isinstance(value, dict):
        return {name: _described(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_described(item) for item in value]
    description = getattr(value, "description", None)  # of a tensor map
    if description is not None:
        return repr(description)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if dtype is not None and shape:
        return str(dtype).rpartition(".")[2], tuple(shape)
    try:
        array = view(value)
    except Exception:  # whatever a library raises: said properly when the arguments are checked
        array = None
    return repr(value) if array is None else (array.dtype, array.shape)
