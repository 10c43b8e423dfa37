"""Modules by name: files of the program, the standard library, and Mojo's module paths.

Parsing is the costly part, so a text is parsed once in a process, and the standard library once for a version of the
syntax: its trees come from the wheel or the user's cache. What knows how to parse is imported where there is something
to parse.
"""

from __future__ import annotations

import functools
from _thread import RLock  # as threading has it, without the module around it
from collections import OrderedDict

from ptxdsl.diagnostics import DiagnosticSink, error, nearest
from ptxdsl.files import cache, resources
from ptxdsl.files.digest import digest
from ptxdsl.files.text_files import (
    SIZE_LIMIT,
    LeavesFolderError,
    find_module,
    is_folder,
    modules_near,
    read_bytes,
    search_folders,
)
from ptxdsl.hints import TYPE_CHECKING, Any
from ptxdsl.record import dataclass, field_names
from ptxdsl.source import Source, Span
from ptxdsl.syntax import ast, stored

if TYPE_CHECKING:
    from ptxdsl.files.compilations import Resolutions

# Mojo's module paths and the module of our standard library that has their names. A name that it lacks is looked
# up among those that need no import, and is for host code where it is not there either.
MOJO_MODULES: dict[str, str] = {
    "layout.tma_async": "mbarrier",
    "max.gpu": "gpu",
    "max.gpu.compute.arch.mma_nvidia_sm100": "tcgen05",
    "max.gpu.globals": "gpu",
    "max.gpu.id": "gpu",
    "max.gpu.intrinsics": "intrinsics",
    "max.gpu.memory": "memory",
    "max.gpu.primitives": "gpu",
    "max.gpu.primitives.block": "block",
    "max.gpu.primitives.cluster": "cluster",
    "max.gpu.primitives.grid_controls": "grid_controls",
    "max.gpu.primitives.warp": "warp",
    "max.gpu.sync": "sync",
    "nn.attention.gpu.nvidia.sm100.attention_utils": "role_pipeline",
    "std.atomic": "atomic",
    "std.bit": "bit",
    "std.math": "math",
    "std.memory": "memory",
    "std.sys": "prelude",
    "std.sys.info": "prelude",
    "std.sys.intrinsics": "prelude",
    "std.time": "prelude",
    "std.utils": "prelude",
    "std.utils.numerics": "math",
}

# Mojo's modules whose names only host code uses. Importing one is allowed, using a name of it in a kernel is not.
HOST_ONLY_MODULES: frozenset[str] = frozenset(
    {
        "layout",
        "max.driver",
        "max.gpu.host",
        "max.gpu.host.compile",
        "max.gpu.host.info",
        "std.benchmark",
        "std.collections",
        "std.os",
        "std.pathlib",
        "std.python",
        "std.random",
        "std.testing",
    }
)

# Modules that people import who think of Python.
_OF_PYTHON = frozenset(
    {"numpy", "torch", "triton", "cupy", "jax", "numba", "cuda", "cutlass", "os", "sys", "typing", "random", "time"}
)

_PARSED_LIMIT = 128
_parsed: OrderedDict[tuple[str, str, str], ast.Module] = OrderedDict()
_library: dict[str, ast.Module] = {}
_reading = RLock()


def read_file(path: str) -> Source:
    """The text of a file, named as given. Raises E1001 to E1003 (no readable file) or E01xx (no text)."""
    return source_of(read_bytes(path), path)


def source_of(data: bytes, name: str) -> Source:
    """Bytes as a text. Raises E1003 where there are too many, E01xx where they are none."""
    if len(data) > SIZE_LIMIT:
        raise error("E1003", f"'{name}' is longer than {SIZE_LIMIT >> 20} MiB", None)
    from ptxdsl.syntax.parse import read_source

    return read_source(data, name)


@dataclass(frozen=True)
class HostOnly:
    """A Mojo module that no kernel can use."""

    module: str


def parse_once(source: Source, sink: DiagnosticSink | None = None) -> ast.Module:
    """The tree of a text; from memory when this process has parsed the same text under the same name before.

    Raises CompileError with E01xx; with a sink, problems are added there and the tree has what could be read.
    """
    known = source.identity
    module = _parsed.get(known)
    if module is not None:
        _parsed.move_to_end(known)
        return module
    from ptxdsl.syntax.parse import parse

    provide_tables()
    found = 0 if sink is None else len(sink.items)
    module = parse(source, sink)
    if sink is None or len(sink.items) == found:  # a tree with holes is not worth keeping
        _parsed[known] = module
        if len(_parsed) > _PARSED_LIMIT:
            _parsed.popitem(last=False)
    return module


def tables_entry() -> tuple[str, bytes]:
    """The cache entry's name and key of the parse tables."""
    return "tables", cache.key("tables", resources.syntax_version())


@functools.cache
def provide_tables() -> None:
    """Parse tables from the wheel or the cache, before the parser is first used: building them takes 0.3 s."""
    from ptxdsl.syntax import tables

    entry, key = tables_entry()
    data = cache.load(entry, key)
    if data is None:
        data = tables.build_tables(resources.grammar_text())
        cache.store(entry, key, data)
    tables.offer_tables(data)


def library_entry(name: str) -> tuple[str, bytes]:
    """The cache entry's name and key of a standard library module's tree."""
    return f"stdlib-{name}", cache.key("stdlib", resources.syntax_version(), name, resources.stdlib_version(name))


class _LibraryModule(ast.Module):
    """A module of the standard library that is read when something in it is first asked for.

    Every compilation imports most of the library by way of the prelude, and uses little of it.
    """

    __slots__ = ("name", "tree")

    def __init__(self, name: str) -> None:
        self.name = name
        self.tree: ast.Module | None = None

    def __getattr__(self, attribute: str) -> Any:  # called for the fields of a Module while their slots are empty
        if attribute not in _MODULE_FIELDS:
            raise AttributeError(attribute)
        with _reading:
            # Another thread may have been here: two trees must not be mixed.
            if self.tree is None:
                self.tree = _read_library_module(self.name)
            for field in _MODULE_FIELDS:
                object.__setattr__(self, field, getattr(self.tree, field))
        return getattr(self.tree, attribute)


_MODULE_FIELDS = field_names(ast.Module)


def library_module(name: str) -> ast.Module:
    """The tree of a standard library module, one of ``resources.stdlib_names()``; the same object each time."""
    return _library.get(name) or _library.setdefault(name, _LibraryModule(name))


def _read_library_module(name: str) -> ast.Module:
    entry, key = library_entry(name)
    data = cache.load(entry, key)  # of the wheel, or a private file of this user
    try:
        if data is not None:
            return stored.load(data)
    except Exception:  # whatever a pickle of other times raises: it is made again
        pass
    module, data = pickled_library_module(name)
    cache.store(entry, key, data)
    return module


def pickled_library_module(name: str) -> tuple[ast.Module, bytes]:
    """A standard library module parsed anew, and its tree as an entry's payload."""
    from ptxdsl.syntax.parse import parse

    provide_tables()
    module = parse(Source(f"stdlib/{name}.pdsl", resources.stdlib_text(name), library=True))
    return module, stored.dump(module)


class Loader:
    """Resolves the imports of one compilation. ``sources`` are the user's texts it has read, in that order.

    folders: where modules lie besides the importing file's own folder. resolutions: for each import in a user's file
    what was found in these.
    """

    def __init__(self) -> None:
        self.folders: tuple[str, ...] = ()
        self.sources: list[Source] = []
        self.resolutions: Resolutions = {}

    def begin(self, program: Source, include: tuple[str, ...]) -> None:
        """Says which program it is whose imports come, and where else its modules lie."""
        self.folders = search_folders(program.name, include)

    def prelude(self) -> ast.Module:
        """What is in scope without an import."""
        return library_module("prelude")

    def stdlib(self, name: str, span: Span | None = None) -> ast.Module:
        """The standard library's module. Raises E0250 when there is none of this name."""
        if name not in resources.stdlib_names():
            raise _unknown(name, span)
        return library_module(name)

    def resolve(self, importing: Source, module: str, level: int, span: Span) -> ast.Module | HostOnly:
        """The module that ``from <level dots><module> import …`` in a text means.

        A file beside the importing one comes first, then one of ``folders``, then the standard library, then Mojo's
        paths. Raises E0250 (unknown), E0251 (outside the program's folders), E1003 (unreadable), E01xx (its text).
        """
        if importing.library:
            return self.stdlib(module, span)
        found = self.file_module(importing, "." * level + module, span)
        if found is not None:
            return found
        if level == 0:
            if module in resources.stdlib_names():
                return library_module(module)
            if module in HOST_ONLY_MODULES:
                return HostOnly(module)
            ours = self.mojo_module(module)
            if ours is not None:
                return ours
        raise self._no_file(importing, "." * level + module, span)

    def file_module(self, importing: Source, module: str, span: Span) -> ast.Module | None:
        """The module of a user's file, None where there is no such file. module: with its leading dots."""
        try:
            path = find_module(importing.name, module, self.folders)
        except LeavesFolderError:
            raise error(
                "E0251",
                f"module '{module}' is outside of the folder of the program",
                span,
                help="move it there, or name its folder with `-I` (in Python `include=`) and import it without dots",
            ) from None
        if path is None:
            self.resolutions[importing.name, module] = "", ""
            return None
        data = read_bytes(path)
        self.resolutions[importing.name, module] = path, digest(data)
        return self._module(source_of(data, path))

    def _no_file(self, importing: Source, module: str, span: Span) -> Exception:
        near = _nearest(module, [*modules_near(importing.name, module, self.folders), *_known_modules()])
        missing = next((folder for folder in self.folders if folder and not is_folder(folder)), None)
        help = None
        if near is not None:
            help = f"did you mean '{near}'?"
        elif missing is not None:
            help = f"there is no folder '{missing}', in which modules are to be"
        elif importing.name.startswith("<"):
            help = "this text has no folder to import from: save it as a file, or name one: `-I`, in Python `include=`"
        return _unknown(module, span, help)

    def mojo_module(self, name: str) -> ast.Module | None:
        """The module of the standard library that stands for a module of Mojo's, if there is one."""
        ours = MOJO_MODULES.get(name)
        return library_module(ours) if ours in resources.stdlib_names() else None

    def _module(self, source: Source) -> ast.Module:
        if all((known.name, known.text) != (source.name, source.text) for known in self.sources):
            self.sources.append(source)
        return parse_once(source)


def module_of_name(node: ast.Import, name: str) -> str:
    """The module that ``from a import name`` means if the name is a file's, with its dots."""
    return f"{'.' * node.level}{node.module}{'.' if node.module else ''}{name}"


def _known_modules() -> list[str]:
    return [*resources.stdlib_names(), *MOJO_MODULES, *HOST_ONLY_MODULES]


def _unknown(module: str, span: Span | None, help: str | None = None) -> Exception:
    if help is None and module.partition(".")[0] in _OF_PYTHON:
        help = "kernels have no modules of Python: what they need from there is passed to them as arguments"
    here = "a module is a file beside this one, in the program's folder or one of `-I`, or of the standard library"
    return error("E0250", f"there is no module '{module}'", span, help=help or here)


def _nearest(module: str, known: list[str]) -> str | None:
    """The module that was meant: under Mojo's present name for an older one, or spelled right."""
    bare = module.removeprefix("std.")
    for renamed in (f"max.{bare}", f"std.{bare}"):
        if renamed in known:
            return renamed
    return nearest(module, known)
