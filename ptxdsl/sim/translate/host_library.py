"""Host code by llvmlite's shared library itself, as ``ptxdsl/llvm_library.py`` uses it for PTX, and as object code.

``llvmlite.binding`` would do the same, but importing it takes as long as compiling a small kernel. Object code that was
kept is linked without the text that it was made of being parsed.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import weakref
from _thread import RLock
from typing import Any

import llvmlite
from llvmlite.utils import get_library_name

from ptxdsl.files import cache
from ptxdsl.llvm_library import DIRECT

_text, _handle, _int, _bool, _size = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_bool, ctypes.c_size_t
_out = ctypes.POINTER(ctypes.c_char_p)

# Name: result and arguments, as in llvmlite/binding/*.py; pointers to LLVM's objects are plain addresses.
_PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "InitializeNativeTarget": (_int, ()),
    "InitializeNativeAsmPrinter": (_int, ()),
    "GetDefaultTargetTriple": (None, (_out,)),
    "GetHostCPUName": (None, (_out,)),
    "GetHostCPUFeatures": (_int, (_out,)),
    "GetTargetFromTriple": (_handle, (_text, _out)),
    "CreateTargetMachine": (_handle, (_handle, _text, _text, _text, _int, _text, _text, _int, _int, _text)),
    "DisposeTargetMachine": (None, (_handle,)),
    "ContextCreate": (_handle, ()),
    "ContextDispose": (None, (_handle,)),
    "ParseAssembly": (_handle, (_handle, _text, _out)),
    "DisposeModule": (None, (_handle,)),
    "TargetMachineEmitToMemory": (_handle, (_handle, _handle, _int, _out)),
    "GetBufferStart": (_handle, (_handle,)),
    "GetBufferSize": (_size, (_handle,)),
    "DisposeMemoryBuffer": (None, (_handle,)),
    "CreateMCJITCompiler": (_handle, (_handle, _handle, _bool, _out)),
    "CreateObjectFile": (_handle, (_text, _size)),
    "DisposeObjectFile": (None, (_handle,)),
    "MCJITAddObjectFile": (None, (_handle, _handle)),
    "FinalizeObject": (None, (_handle,)),
    "AddSymbol": (None, (_text, _handle)),
    "GetFunctionAddress": (ctypes.c_uint64, (_handle, _text)),
    "DisposeExecutionEngine": (None, (_handle,)),
    "DisposeString": (None, (_text,)),
}

_lock = RLock()  # LLVM's tables of symbols are those of the process


class _Library:
    def __init__(self, path: str) -> None:
        loaded = ctypes.CDLL(path)
        self.call = type("Functions", (), {})()
        for name, (result, arguments) in _PROTOTYPES.items():
            function = loaded[f"LLVMPY_{name}"]  # by index: binding's prototypes stay as they are
            function.restype, function.argtypes = result, arguments
            setattr(self.call, name, function)
        self.call.InitializeNativeTarget()
        self.call.InitializeNativeAsmPrinter()
        self.triple = self.words(self.call.GetDefaultTargetTriple)
        self.cpu = self.words(self.call.GetHostCPUName)
        self.features = self.words(self.call.GetHostCPUFeatures)
        # As binding chooses it: elsewhere LLVM's own manager of memory for code is good.
        self.own_memory = platform.machine().lower() in ("arm64", "aarch64")

    def words(self, function: Any, *arguments: Any) -> str:
        """The text that a function leaves in its last argument."""
        said = ctypes.c_char_p()
        function(*arguments, said)
        return self.take(said)

    def take(self, said: ctypes.c_char_p) -> str:
        text = (said.value or b"").decode("utf-8", "replace")
        self.call.DisposeString(said)
        return text

    def made(self, function: Any, *arguments: Any) -> Any:
        """An object. Raises RuntimeError with LLVM's words where there is none."""
        said = ctypes.c_char_p()
        found = function(*arguments, said)
        if not found:
            raise RuntimeError(self.take(said))
        return found

    def machine(self, host: tuple[str, str], optimise: int) -> Any:
        cpu, features = host
        target = self.made(self.call.GetTargetFromTriple, self.triple.encode())
        wanted = (self.triple.encode(), cpu.encode(), features.encode(), optimise, b"default", b"jitdefault")
        return self.call.CreateTargetMachine(target, *wanted, 0, 1, b"")

    def object_code(self, machine: Any, text: str) -> bytes:
        call, context = self.call, self.call.ContextCreate()
        try:
            module = self.made(call.ParseAssembly, context, text.encode())
            try:
                buffer = self.made(call.TargetMachineEmitToMemory, machine, module, 1)
                code = ctypes.string_at(call.GetBufferStart(buffer), call.GetBufferSize(buffer))
                call.DisposeMemoryBuffer(buffer)
                return code
            finally:
                call.DisposeModule(module)
        finally:
            call.ContextDispose(context)


@functools.cache
def library() -> _Library | None:
    """None where ``llvmlite.binding`` is to be used: for versions whose prototypes were not compared."""
    path = os.path.join(os.path.dirname(llvmlite.__file__), "binding", get_library_name())
    return _Library(path) if llvmlite.__version__.startswith(DIRECT) and os.path.isfile(path) else None


class LinkedCode:
    """Object code of this process, alive as long as this object is."""

    def __init__(self, library: _Library, machine: Any, code: bytes) -> None:
        call = library.call
        self._library, self._code = library, code
        context = call.ContextCreate()
        # The engine has the machine and the (empty) module from here on.
        module = library.made(call.ParseAssembly, context, b"")
        self._engine = library.made(call.CreateMCJITCompiler, module, machine, library.own_memory)
        file = call.CreateObjectFile(code, len(code))
        call.MCJITAddObjectFile(self._engine, file)
        call.DisposeObjectFile(file)
        call.FinalizeObject(self._engine)
        # In this order, whatever the garbage collector does: an engine that outlives its context crashes.
        weakref.finalize(self, _close, call, self._engine, context)

    def address(self, name: str) -> int:
        """Host address of a function."""
        with _lock:
            return int(self._library.call.GetFunctionAddress(self._engine, name.encode()))


def _close(call: Any, engine: Any, context: Any) -> None:
    with _lock:
        call.DisposeExecutionEngine(engine)
        call.ContextDispose(context)


def link(library: _Library, text: str, host: tuple[str, str], optimise: int, keep: str | None) -> LinkedCode:
    """``host_code.compile_ir`` by this library. host: the processor and its features."""
    key = None
    if keep is not None:
        key = cache.key(text, *host, str(optimise), llvmlite.__version__, library.triple)
    with _lock:
        machine = library.machine(host, optimise)
        code = cache.load_own(keep, key) if keep is not None and key is not None else None
        if code is None:
            try:
                code = library.object_code(machine, text)
            except RuntimeError:
                library.call.DisposeTargetMachine(machine)
                raise
            if keep is not None and key is not None:
                cache.store(keep, key, code)
        return LinkedCode(library, machine, code)
