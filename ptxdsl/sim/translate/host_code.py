"""LLVM IR text to callable host code, through llvmlite's MCJIT."""

from __future__ import annotations

import functools
import weakref
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from ptxdsl import cache


class HostCode:
    """Compiled code, alive as long as this object is."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def address(self, name: str) -> int:
        """Host address of a function."""
        return int(self._engine.get_function_address(name))


@functools.cache
def _target() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple()


@functools.cache
def _host() -> tuple[str, str]:
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def compile_ir(text: str, optimise: int, keep: str | None = None) -> HostCode:
    """Compiles a module. optimise: of the code generator, 0 to 3; no passes are run over the IR before it. keep: the
    name under which the object code is looked for in the user's cache and left there.

    Raises RuntimeError for text that is no LLVM IR, which is a bug of the translation.
    """
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
    code = HostCode(engine)
    # In this order, whatever the garbage collector does: an engine that outlives its context crashes.
    weakref.finalize(code, _close, engine, context)
    return code


def _close(engine: Any, context: Any) -> None:
    engine.close()
    context.close()
