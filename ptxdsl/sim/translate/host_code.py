"""LLVM IR text to callable host code, through llvmlite's MCJIT.

In llvmlite's library itself (``host_library.py``) where its version is known, by ``llvmlite.binding`` else.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any, Protocol

import llvmlite

from ptxdsl.files import cache
from ptxdsl.sim.translate.host_library import library, link


class HostCode(Protocol):
    """Compiled code, alive as long as this object is."""

    def address(self, name: str) -> int:
        """Host address of a function."""


class _BindingCode:
    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def address(self, name: str) -> int:
        """Host address of a function."""
        return int(self._engine.get_function_address(name))


def add_symbol(name: str, address: int) -> None:
    """Lets all code that is compiled from now on call a function by a name. Of equal names the last one holds."""
    direct = library()
    if direct is not None:
        direct.call.AddSymbol(name.encode(), address)
        return
    import llvmlite.binding as llvm

    llvm.add_symbol(name, address)


@functools.cache
def _target() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


@functools.cache
def _host() -> tuple[str, str]:
    """The processor that code is for, and its features."""
    direct = library()
    if direct is not None:
        return direct.cpu, direct.features
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def compile_ir(text: str, optimise: int, keep: str | None = None) -> HostCode:
    """Compiles a module. optimise: of the code generator, 0 to 3; no passes are run over the IR before it. keep: the
    name under which the object code is looked for in the user's cache and left there.

    Raises RuntimeError for text that is no LLVM IR, which is a bug of the translation.
    """
    direct = library()
    if direct is not None:
        return link(direct, text, _host(), optimise, keep)
    import llvmlite.binding as llvm  # where the library alone does not do

    target = _target()
    context = llvm.create_context()
    module = llvm.parse_assembly(text, context)
    cpu, features = _host()
    machine = target.create_target_machine(cpu=cpu, features=features, opt=optimise, jit=True)
    engine = llvm.create_mcjit_compiler(module, machine)
    if keep is not None:
        entry_key = cache.key(text, cpu, features, str(optimise), llvmlite.__version__, target.triple)
        engine.set_object_cache(
            lambda module, code: cache.store(keep, entry_key, code), lambda module: cache.load_own(keep, entry_key)
        )
    engine.finalize_object()
    code = _BindingCode(engine)
    # In this order, whatever the garbage collector does: an engine that outlives its context crashes.
    weakref.finalize(code, _close, engine, context)
    return code


def _close(engine: Any, context: Any) -> None:
    engine.close()
    context.close()
