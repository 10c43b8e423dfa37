"""LLVM by way of llvmlite: text of LLVM IR in, assembly text out.

``llvmlite.binding`` describes all of LLVM to Python, with ``llvmlite.ir`` and half of the standard library behind it:
importing it takes a fifth of a whole compilation. The functions that are used here are therefore called in llvmlite's
shared library itself, by the prototypes that ``binding`` gives them. That is done for the versions in ``DIRECT`` only,
whose prototypes were compared; of any other version ``binding`` is used. Both ways give the same text.
"""

from __future__ import annotations

import ctypes
import functools
import os
from _thread import allocate_lock, start_new_thread  # of threading, without the module around them
from collections.abc import Sequence

import llvmlite
from llvmlite.utils import get_library_name

from ptxdsl.hints import Any, Protocol

DIRECT = ("0.50.",)

# Process-wide; LLVM reads them when a target machine is made or a pass runs. Shared addresses are 32 bits wide. From a
# store, what it overwrites is looked for among the 30 writes before it, not 90: thousands of stores in a row took a
# second, and kernels that store to one place twice do it at once.
_OPTIONS = ("--nvptx-short-ptr", "--dse-memoryssa-walklimit=30")

_OPTIMISATION_LEVEL = 3

# Of the back end behind functions that are optimised one by one. The highest looks for common values in a way that
# takes longer; the kernels that go this way are the same without it.
_LEVEL_OF_ALONE = 2

# The passes of functions that are optimised one by one. LLVM's own pipeline for functions has forty, InstCombine seven
# times; of the kernels that go this way it makes no less machine code. (NewGVN adds nothing either, and LLVM has it off
# by default, for what it miscompiles.)
_PASSES_OF_ALONE = ("InstCombine", "SimplifyCFG")


class Machine(Protocol):
    """LLVM's back end for one target."""

    data_layout: str

    def assembly(self, ir: str, functions: Sequence[str] = ()) -> str:
        """The optimised assembly of a module. Raises RuntimeError with LLVM's words where the text is wrong.

        With ``functions`` these are optimised one by one, each for itself, in place of the module as a whole.
        """


def machine(triple: str, cpu: str, features: str, alone: bool = False) -> Machine:
    """A new target machine. ``alone``: it is for functions that are optimised one by one. Raises RuntimeError for a
    triple that LLVM does not know."""
    library, level = _library(), _LEVEL_OF_ALONE if alone else _OPTIMISATION_LEVEL
    if library is None:
        return _BindingMachine(triple, cpu, features, level)
    return _DirectMachine(library, triple, cpu, features, level)


# ---------------------------------------------------------------------------------------- by llvmlite's shared library

_text, _handle, _int = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int
_out = ctypes.POINTER(ctypes.c_char_p)

# Name: result and arguments, as in llvmlite/binding/*.py; pointers to LLVM's objects are plain addresses.
_PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "SetCommandLine": (None, (_text, _text)),
    "InitializeAllTargetInfos": (None, ()),
    "InitializeAllTargets": (None, ()),
    "InitializeAllTargetMCs": (None, ()),
    "InitializeAllAsmPrinters": (None, ()),
    "GetTargetFromTriple": (_handle, (_text, _out)),
    "CreateTargetMachine": (_handle, (_handle, _text, _text, _text, _int, _text, _text, _int, _int, _text)),
    "CreateTargetMachineData": (_handle, (_handle,)),
    "CopyStringRepOfTargetData": (None, (_handle, _out)),
    "DisposeTargetData": (None, (_handle,)),
    "ContextCreate": (_handle, ()),
    "ContextDispose": (None, (_handle,)),
    "ParseAssembly": (_handle, (_handle, _text, _out)),
    "VerifyModule": (ctypes.c_bool, (_handle, _out)),
    "DisposeModule": (None, (_handle,)),
    "CreatePipelineTuningOptions": (_handle, ()),
    "DisposePipelineTuningOptions": (None, (_handle,)),
    "CreatePassBuilder": (_handle, (_handle, _handle)),
    "DisposePassBuilder": (None, (_handle,)),
    "buildPerModuleDefaultPipeline": (_handle, (_handle, _int)),
    "RunNewModulePassManager": (None, (_handle, _handle, _handle)),
    "DisposeNewModulePassManger": (None, (_handle,)),  # spelled so
    "GetNamedFunction": (_handle, (_handle, _text)),
    "CreateNewFunctionPassManager": (_handle, ()),
    **{f"function_Add{name}Pass": (None, (_handle,)) for name in _PASSES_OF_ALONE},
    "RunNewFunctionPassManager": (None, (_handle, _handle, _handle)),
    "DisposeNewFunctionPassManger": (None, (_handle,)),
    "TargetMachineEmitToMemory": (_handle, (_handle, _handle, _int, _out)),
    "GetBufferStart": (ctypes.c_void_p, (_handle,)),
    "GetBufferSize": (ctypes.c_size_t, (_handle,)),
    "DisposeMemoryBuffer": (None, (_handle,)),
    "DisposeString": (None, (_text,)),
}

# The calls that take their time leave Python to other threads. The others do not: to have it again takes longer.
_LONG = frozenset({
    "ParseAssembly", "VerifyModule", "TargetMachineEmitToMemory",
    "RunNewModulePassManager", "RunNewFunctionPassManager",
})  # fmt: skip


def load_ahead() -> None:
    """Begins to load LLVM in another thread, where that is still to be done: it takes a twelfth of a process that
    compiles a small kernel. Python's own way to load a library lets no other thread run; the system's does."""
    if _library.cache_info().currsize == 0 and os.name == "posix":
        load = ctypes.CDLL(None).dlopen
        load.argtypes = (_text, _int)
        try:
            start_new_thread(load, (os.fsencode(_path()), os.RTLD_NOW))
        except RuntimeError:  # the system gives no more threads: it is loaded where it is needed
            return


def _path() -> str:
    return os.path.join(os.path.dirname(llvmlite.__file__), "binding", get_library_name())


@functools.cache
def _library() -> Any:
    """The prepared functions by name, LLVM initialised; None where ``llvmlite.binding`` is to be used."""
    path = _path()
    if not llvmlite.__version__.startswith(DIRECT) or not os.path.isfile(path):
        return None
    loaded = ctypes.CDLL(path)  # waits where it is being loaded
    short = ctypes.PyDLL(path, handle=loaded._handle)
    functions = type("Functions", (), {})()
    for name, (result, arguments) in _PROTOTYPES.items():
        # By index: an object of our own, so binding's prototypes stay as they are.
        function = (loaded if name in _LONG else short)[f"LLVMPY_{name}"]
        function.restype, function.argtypes = result, arguments
        setattr(functions, name, function)
    for option in _OPTIONS:
        functions.SetCommandLine(b"ptxdsl", option.encode())
    functions.InitializeAllTargetInfos()
    functions.InitializeAllTargets()
    functions.InitializeAllTargetMCs()
    functions.InitializeAllAsmPrinters()
    return functions


# A text with this flag is verified while it is parsed, since LLVM asks whether its debug information is good. (One that
# is wrong ends the process there.)
_DEBUG_INFO = "Debug Info Version"


class _DirectMachine:
    def __init__(self, library: Any, triple: str, cpu: str, features: str, level: int) -> None:
        self._library = library
        self._lock = allocate_lock()  # a target machine serves one module at a time
        said = ctypes.c_char_p()
        target = library.GetTargetFromTriple(triple.encode(), said)
        if not target:
            raise RuntimeError(self._take(said))
        wanted = (triple.encode(), cpu.encode(), features.encode(), level, b"default", b"jitdefault")
        self._machine = library.CreateTargetMachine(target, *wanted, 0, 0, b"")
        data = library.CreateTargetMachineData(self._machine)
        library.CopyStringRepOfTargetData(data, said)
        library.DisposeTargetData(data)
        self.data_layout = self._take(said)

    def assembly(self, ir: str, functions: Sequence[str] = ()) -> str:
        library = self._library
        with self._lock:
            # A context of its own: nothing of one compilation is seen by the next.
            context = library.ContextCreate()
            try:
                said = ctypes.c_char_p()
                module = library.ParseAssembly(context, ir.encode(), said)
                if not module:
                    raise RuntimeError(f"LLVM IR parsing error\n{self._take(said)}")
                try:
                    if _DEBUG_INFO not in ir:
                        self._verify(module)
                    self._optimise(module, functions)
                    return self._emit(module)
                finally:
                    library.DisposeModule(module)
            finally:
                library.ContextDispose(context)

    def _verify(self, module: Any) -> None:
        said = ctypes.c_char_p()
        broken, words = self._library.VerifyModule(module, said), self._take(said)
        if broken:
            raise RuntimeError(words)

    def _optimise(self, module: Any, functions: Sequence[str]) -> None:
        library = self._library
        tuning = library.CreatePipelineTuningOptions()
        builder = library.CreatePassBuilder(self._machine, tuning)
        if functions:
            passes = library.CreateNewFunctionPassManager()
            for name in _PASSES_OF_ALONE:
                getattr(library, f"function_Add{name}Pass")(passes)
            for name in functions:
                library.RunNewFunctionPassManager(passes, library.GetNamedFunction(module, name.encode()), builder)
            library.DisposeNewFunctionPassManger(passes)
        else:
            passes = library.buildPerModuleDefaultPipeline(builder, _OPTIMISATION_LEVEL)
            library.RunNewModulePassManager(passes, module, builder)
            library.DisposeNewModulePassManger(passes)
        library.DisposePassBuilder(builder)
        library.DisposePipelineTuningOptions(tuning)

    def _emit(self, module: Any) -> str:
        library, said = self._library, ctypes.c_char_p()
        buffer = library.TargetMachineEmitToMemory(self._machine, module, 0, said)
        if not buffer:
            raise RuntimeError(self._take(said))
        try:
            return ctypes.string_at(library.GetBufferStart(buffer), library.GetBufferSize(buffer)).decode()
        finally:
            library.DisposeMemoryBuffer(buffer)

    def _take(self, said: ctypes.c_char_p) -> str:
        """A text that LLVM made, and that it is told to forget."""
        words = (said.value or b"").decode("utf-8", "replace")
        self._library.DisposeString(said)
        return words


# ------------------------------------------------------------------------------------------------ by llvmlite.binding


@functools.cache
def _binding() -> Any:
    import llvmlite.binding as binding  # where the library alone does not do

    for option in _OPTIONS:
        binding.set_option("ptxdsl", option)
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding


class _BindingMachine:
    def __init__(self, triple: str, cpu: str, features: str, level: int) -> None:
        target = _binding().Target.from_triple(triple)
        self._machine = target.create_target_machine(cpu=cpu, features=features, opt=level)
        self.data_layout = str(self._machine.target_data)

    def assembly(self, ir: str, functions: Sequence[str] = ()) -> str:
        binding = _binding()
        module = binding.parse_assembly(ir, binding.create_context())
        module.verify()
        tuning = binding.create_pipeline_tuning_options(speed_level=_OPTIMISATION_LEVEL)
        builder = binding.create_pass_builder(self._machine, tuning)
        if functions:
            passes = binding.create_new_function_pass_manager()
            for name in _PASSES_OF_ALONE:
                getattr(binding.ffi.lib, f"LLVMPY_function_Add{name}Pass")(passes)
            for name in functions:
                passes.run(module.get_function(name), builder)
        else:
            builder.getModulePassManager().run(module, builder)
        return str(self._machine.emit_assembly(module))
