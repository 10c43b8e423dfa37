"""Compiled kernels of the Python API on disk: a kernel that was compiled before starts without the compiler.

An entry is found by the compiler's own files, LLVM's version, the text and its name, the kernel, its constants and the
options; it is void where an import is no longer what it was (``files/compilations.py``). It is a pickle, so
``files/cache.py`` reads it only where no other user can have written it.
"""

from __future__ import annotations

import functools
import pickle

from ptxdsl.compiled import Compiled, Constants, from_artifact
from ptxdsl.files import cache, compilations
from ptxdsl.files.text_files import search_folders
from ptxdsl.options import Options
from ptxdsl.record import field_names
from ptxdsl.source import Source

_NAME = "kernel"


def compile_kernel(source: Source, kernel: str | None, constants: Constants, options: Options) -> Compiled:
    """The artifact, of the cache or made now. constants: expression texts. Raises CompileError."""
    key = _key(source, kernel, constants, options)
    found = None if key is None else _kept(key, source, options)
    if found is not None:
        return found
    from ptxdsl import driver

    job = driver.Job(source, kernel, dict(constants), options)
    made = from_artifact(driver.compiled(job), source, kernel, constants)
    if key is not None:
        _store(key, made, job.loader.resolutions)
    return made


def known_kernel(source: Source, kernel: str | None, constants: Constants, options: Options) -> Compiled | None:
    """The artifact of the cache, None where it has none."""
    key = _key(source, kernel, constants, options)
    return None if key is None else _kept(key, source, options)


def _key(source: Source, kernel: str | None, constants: Constants, options: Options) -> bytes | None:
    if compilations.turned_off():
        return None
    asked = repr((kernel, constants, options))
    texts = (part.encode("utf-8", "surrogatepass") for part in source.identity)
    return cache.key("kernel", _compiler(), asked, *texts)


@functools.cache
def _compiler() -> str:
    return compilations.compiler()


def _kept(key: bytes, source: Source, options: Options) -> Compiled | None:
    return _read(compilations.look_up(_NAME, key, search_folders(source.name, options.include)))


def _store(key: bytes, made: Compiled, resolutions: compilations.Resolutions) -> None:
    fields = {name: getattr(made, name) for name in field_names(Compiled)}
    compilations.keep(_NAME, key, resolutions, pickle.dumps(fields, protocol=5))


def _read(data: bytes | None) -> Compiled | None:
    if data is None:
        return None
    try:
        return Compiled(**pickle.loads(data))
    except Exception:  # whatever a pickle of other times raises: it is made again
        return None
