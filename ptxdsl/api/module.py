"""Modules of the Python API: load a text, pick a kernel, launch it.

The compiler is imported where there is something to compile: `import ptxdsl` loads none of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ptxdsl.api.constant_texts import constants as constant_texts
from ptxdsl.api.kernel import Kernel
from ptxdsl.api.program import Program
from ptxdsl.compiled import Compiled
from ptxdsl.cuda.driver_interface import Driver
from ptxdsl.diagnostics import launch_error, nearest
from ptxdsl.options import CheckForm, Options, WaitForm, checked
from ptxdsl.shown import shown
from ptxdsl.source import Source

__all__ = ["Module", "build", "compile", "load", "loads"]

# Characters. A path that is longer than file systems let a name be, and names no file, is likely a program's text.
_LONGEST_NAME = 255
_SHOWN_NAME = 40  # of such a one in messages
_FILES = (".pdsl", ".mojo", ".ptx")


def load(
    path: str | os.PathLike[str],
    *,
    wait: WaitForm = "try",
    contract: bool = True,
    lineinfo: bool = False,
    ring_unroll: bool = True,
    ptx_version: tuple[int, int] | None = None,
    check: CheckForm = "warn",
    include: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
) -> Module:
    """The kernels of a ``.pdsl`` or ``.mojo`` file. The keywords are the compiler's options (``Options``).

    include: one or several folders whose modules may be imported, besides the file's own.

    Raises CompileError if the file cannot be read, TypeError if ``path`` is not a path. The text is parsed when a
    kernel is first asked for.
    """
    from ptxdsl.imports import read_file

    options = checked(Options("sm_90a", ptx_version, wait, contract, lineinfo, ring_unroll, check, _folders(include)))
    place = _path(path)
    return Module(read_file(place), options, path=place)


def loads(
    text: str,
    name: str | None = None,
    *,
    wait: WaitForm = "try",
    contract: bool = True,
    lineinfo: bool = False,
    ring_unroll: bool = True,
    ptx_version: tuple[int, int] | None = None,
    check: CheckForm = "warn",
    include: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
) -> Module:
    """The kernels of a text. Otherwise like ``load``.

    name: what diagnostics call the text. None: a text that is a literal in the caller's code (a file, a notebook's
    cell, the text of ``python -c``) has that code's name, lines and columns; any other is ``<text>``.
    """
    from ptxdsl.api.embedded import UNNAMED, source_in
    from ptxdsl.imports import source_of

    options = checked(Options("sm_90a", ptx_version, wait, contract, lineinfo, ring_unroll, check, _folders(include)))
    if not isinstance(name, str | None):
        raise TypeError(f"the name of a text is a str, not {type(name).__name__}")
    source = source_of(_text(text).encode("utf-8", "surrogatepass"), UNNAMED if name is None else name)
    return Module(source_in(source.text, sys._getframe(1)) if name is None else source, options)


def _folders(include: object) -> tuple[str, ...]:
    given = include if isinstance(include, list | tuple) else (include,)
    if not all(isinstance(folder, str | os.PathLike) for folder in given):
        raise TypeError(f"include is a folder or several, each a str or a path, not {shown(include)}")
    return tuple(os.fsdecode(folder) for folder in given)


def compile(
    source: str | os.PathLike[str] | Module,
    *,
    kernel: str | None = None,
    arch: str = "sm_90a",
    constants: Mapping[str, Any] | None = None,
) -> Compiled:
    """Compiles a file, or a module of ``loads``, to PTX; needs no GPU.

    kernel: the name of a def, or None for all ``@kernel`` defs. arch: a target's name (``ptxdsl targets``). constants:
    values of the kernel's comptime parameters, as for ``Kernel.specialize``. Raises CompileError, and TypeError like
    ``load``.
    """
    module = source if isinstance(source, Module) else load(source)
    return module._program.compile(kernel, constant_texts({} if constants is None else constants), arch)


def build(
    source: str | os.PathLike[str] | Module | Kernel,
    folder: str | os.PathLike[str] = ".",
    *,
    kernel: str | None = None,
    arch: str | Sequence[str] = "sm_90a",
    constants: Mapping[str, Any] | None = None,
    formats: str | Sequence[str] = "c",
) -> tuple[str, ...]:
    """Writes files that launch kernels without Python, and returns their paths, like ``ptxdsl build``; needs no GPU.

    source: a file, a module or a kernel. kernel, constants: as for ``compile``. folder: created if it is missing;
    existing files are replaced. arch: one target or several. formats: one or several of ``ptx``, ``cubin``, ``fatbin``
    (the last two need NVIDIA's tools, the extra ``assemble``) and ``c``: a header and a source in C99 that contain the
    code and launch it through the driver. Raises CompileError; nothing is written then, unless a file cannot be
    written (E1007).
    """
    from ptxdsl.aot.files import build_files

    given = constant_texts({} if constants is None else constants)
    if isinstance(source, Kernel):
        if kernel is not None and not (isinstance(kernel, str) and kernel == source.name):
            raise TypeError(f"kernel={shown(kernel)} beside {source!r}: give one of them")
        chosen = source.specialize(**dict(given))
        source, kernel, given = chosen.module, chosen.name, chosen._constants
    module = source if isinstance(source, Module) else load(source)
    program = module._program
    if not isinstance(kernel, str | None):
        raise TypeError(f"a kernel's name is a str, not {type(kernel).__name__}")
    archs, wanted = _names(arch, "arch"), _names(formats, "formats")
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"the folder is a str or a path, not {type(folder).__name__}")
    return build_files(program.source, os.fsdecode(folder), kernel, given, program.options, archs, wanted).paths


class Module:
    """The kernels of one text, as attributes and items; ``dir`` lists them.

    The text stays as it was loaded, whatever happens to the file; ``reload`` reads it again. Imported files are read
    when a kernel is compiled.
    """

    def __init__(
        self, source: Source, options: Options | None = None, driver: Driver | None = None, path: str | None = None
    ) -> None:
        self._program = Program(source, options or Options(), driver)
        self._path = path
        self._kernels: dict[str, Kernel] = {}

    def reload(self) -> bool:
        """Reads the file again, and returns whether its text has changed (imported files do not count).

        The module's kernels are then new ones, compiled again; kernels that were taken from it before stay as they are.
        Raises LaunchError E0921 for a module of ``loads``, and CompileError like ``load``, with nothing changed.
        """
        if self._path is None:
            name = self._program.source.name
            raise launch_error("E0921", f"'{name}' was loaded from a text and has no file to be read again")
        from ptxdsl.imports import read_file

        source, old = read_file(self._path), self._program
        with old.lock:
            self._program = Program(source, old.options, old.driver)
            self._kernels = {}
        return source.text != old.source.text

    def unload(self) -> None:
        """``Kernel.unload`` of all its kernels, specialised ones too."""
        for kernel in list(self._kernels.values()):
            for special in list(kernel._family.values()):
                special.unload()

    def __reduce__(self) -> Any:
        """For processes that are spawned: the text goes over as it is."""
        return _rebuilt, (self._program.source, self._program.options, self._path)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the ``@kernel`` defs, or of all defs if none is marked."""
        defs = self._program.definitions()
        marked = tuple(n for n, d in defs.items() if any(decorator.name == "kernel" for decorator in d.decorators))
        return marked or tuple(defs)

    def __getitem__(self, name: str) -> Kernel:
        """A kernel by its name. Raises LaunchError E0913 if the text has no such def."""
        if not isinstance(name, str):
            raise TypeError(f"a kernel's name is a str, not {type(name).__name__}")
        if self._program.seems_to_define(name):
            return self._kernel(name)
        defs = self._program.definitions()
        if name not in defs:
            close = nearest(name, defs)
            known = f"its kernels: {', '.join(self.kernels)}" if defs else "it has no def at all"
            raise launch_error(
                "E0913",
                f"'{self._program.source.name}' has no kernel '{name}'",
                help=self._imported(name) or (f"did you mean '{close}'?" if close else known),
            )
        return self._kernel(name)

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("__"):
            raise AttributeError(name)
        if not self._program.seems_to_define(name) and name not in self._program.definitions():
            close = nearest(name, self._program.definitions())
            instead = self._imported(name) or (f"did you mean '{close}'?" if close else "")
            hint = f"; {instead}" if instead else ""
            raise AttributeError(f"'{self._program.source.name}' has no kernel '{name}'{hint}")
        return self._kernel(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._program.definitions()]

    def __repr__(self) -> str:
        return f"<ptxdsl module '{self._program.source.name}': {', '.join(self.kernels) or 'no kernels'}>"

    def _imported(self, name: str) -> str | None:
        module = self._program.imports(name)
        return None if module is None else f"it is imported from '{module}': load the file of that module"

    def _kernel(self, name: str) -> Kernel:
        with self._program.lock:
            if name not in self._kernels:
                self._kernels[name] = Kernel(self, self._program, name, ())
            return self._kernels[name]


def _names(value: Any, what: str) -> tuple[str, ...]:
    """One name or several. Raises TypeError for what is neither."""
    names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else ()
    if not all(isinstance(name, str) for name in names) or not isinstance(value, Iterable):
        raise TypeError(f"{what} is a name or several, not {shown(value)}")
    return names


def _text(value: Any) -> str:
    """Raises TypeError for what is no text, CompileError E1001 for a path."""
    if not isinstance(value, str):
        hint = ": decode it first" if isinstance(value, bytes | bytearray) else ""
        hint = ": ptxdsl.load(path) reads a file" if isinstance(value, os.PathLike) else hint
        raise TypeError(f"the text of a program is a str, not {type(value).__name__}{hint}")
    if value.endswith(_FILES) and "\n" not in value:
        from ptxdsl.diagnostics import error

        message = f"loads takes the text of a program, not the name of its file, {shown(value)}"
        raise error("E1001", message, None, help="ptxdsl.load(path) reads a file")
    return value


def _path(value: Any) -> str:
    """A path as a text. Raises TypeError for what is none, CompileError E1001 for the text of a program."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"the path of a program is a str or a path, not {type(value).__name__}")
    path = os.fsdecode(value)
    if ("\n" in path or len(path) > _LONGEST_NAME) and not os.path.exists(path):
        from ptxdsl.diagnostics import error

        start = next(iter(path.strip().splitlines()), "")[:_SHOWN_NAME]
        help = "if this is the text of a program, use ptxdsl.loads(text)"
        raise error("E1001", f"there is no file named '{start}…' ({len(path)} characters)", None, help=help)
    return path


def _rebuilt(source: Source, options: Options, path: str | None) -> Module:
    return Module(source, options, path=path)
