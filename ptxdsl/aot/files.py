"""What ``ptxdsl build`` and ``ptxdsl.build`` write: files by their formats, all of them or none."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence

from ptxdsl.aot.c_source import CSource, Image
from ptxdsl.aot.fatbin import fatbin
from ptxdsl.compiled import Compiled, Constants
from ptxdsl.diagnostics import CompileError, Diagnostic, error
from ptxdsl.files.output_files import is_same_file, make_folder, write_files
from ptxdsl.kernel_cache import compile_kernel
from ptxdsl.options import Options
from ptxdsl.record import dataclass, replace
from ptxdsl.source import Source
from ptxdsl.targets import target


@dataclass(frozen=True)
class Built:
    """paths: of the files that were written, in their order. warnings: of the compilations."""

    paths: tuple[str, ...]
    warnings: tuple[Diagnostic, ...]


def build_files(
    source: Source,
    folder: str,
    kernel: str | None,
    constants: Constants,
    options: Options,
    archs: Sequence[str],
    formats: Sequence[str],
) -> Built:
    """Compiles for each target and writes each format. options: those of all targets.

    Raises CompileError: whatever a compilation raises, E1025 for a format there is not and for what has no signatures,
    E1007 for a folder that cannot be written to, E1012 where a file would take the source's place.
    """
    if os.path.splitext(source.name)[1] in (".ll", ".ptx"):
        help = "`ptxdsl compile` makes machine code of it"
        raise error("E1025", f"'{source.name}' has no kernels whose parameters are known", None, help=help)
    unknown = [name for name in formats if name not in _FORMATS]
    if unknown or not formats or not archs:
        message = f"there is no format '{unknown[0]}'" if unknown else "nothing is asked for: no target or no format"
        raise error("E1025", message, None, help=f"the formats are {', '.join(_FORMATS)}")
    made = [compile_kernel(source, kernel, constants, replace(options, arch=arch)) for arch in _best_first(archs)]
    name = _name(made[0], source.name)
    contents = [item for form in dict.fromkeys(formats) for item in _FORMATS[form](name, made)]
    paths = [os.path.join(folder, file) for file, _ in contents]
    for path in paths:
        if is_same_file(path, source.name):
            help = "name another folder with -o, or the source .pdsl"
            raise error("E1012", f"the output '{path}' is the file that is read", None, help=help)
    make_folder(folder)
    write_files(zip(paths, (data for _, data in contents), strict=True))
    warnings = dict.fromkeys(d for compiled in made for d in compiled.warnings)
    return Built(tuple(paths), tuple(warnings))


def _best_first(archs: Iterable[str]) -> list[str]:
    """Each target once, those with the most features before those that run on more devices. Raises E07xx."""
    targets = {target(arch) for arch in archs}
    return [t.name for t in sorted(targets, key=lambda t: (t.capability, ("", "f", "a").index(t.suffix)), reverse=True)]


def _name(made: Compiled, origin: str) -> str:
    """What the files are called: as the kernel where there is one, else as the file."""
    stem = os.path.splitext(os.path.basename(origin))[0]
    if len(made.signatures) == 1:
        stem = next(iter(made.signatures))
    return re.sub(r"[^A-Za-z0-9_.-]", "_", stem).strip("._-") or "kernels"


def _each(name: str, made: Sequence[Compiled], suffix: str, of: Callable[[Compiled], str | bytes]) -> list[File]:
    """A file for each target; its name says which where there are several."""
    one = len(made) == 1
    return [(f"{name}{'' if one else f'.{c.options.arch}'}.{suffix}", of(c)) for c in made]


def _ptx(name: str, made: Sequence[Compiled]) -> list[File]:
    return _each(name, made, "ptx", lambda compiled: compiled.ptx)


def _cubin(name: str, made: Sequence[Compiled]) -> list[File]:
    return _each(name, made, "cubin", Compiled.cubin)


def _fatbin(name: str, made: Sequence[Compiled]) -> list[File]:
    return [(f"{name}.fatbin", fatbin(made))]


def _c(name: str, made: Sequence[Compiled]) -> list[File]:
    """The machine code for each target, where there is a ptxas, and the PTX behind it."""
    images = []
    try:
        images = [Image(c.options.arch, c.cubin()) for c in made]
    except CompileError as problem:
        if problem.diagnostics[0].code != "E0803":
            raise
    images += [Image(c.options.arch, c.ptx.encode() + b"\0") for c in made]
    # a kernel's text cannot ask for its target: the signatures are the same for all
    signatures = tuple(made[0].signatures.values())
    written = CSource(name, signatures, images, os.path.basename(made[0].source.name if made[0].source else name))
    return [(f"{name}.h", written.header()), (f"{name}.c", written.source())]


File = tuple[str, str | bytes]

_FORMATS: dict[str, Callable[[str, Sequence[Compiled]], list[File]]] = {
    "ptx": _ptx, "cubin": _cubin, "fatbin": _fatbin, "c": _c,
}  # fmt: skip
