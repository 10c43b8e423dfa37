"""Where the grammar and the standard library lie: in a wheel, a checkout or an editable install.

In a wheel they are inside the package (``ptxdsl/grammar``, ``ptxdsl/stdlib``), together with what was made from them
when the wheel was built (``ptxdsl/_generated``). In a checkout, and so in an editable install, they are the top-level
folders beside the package, and what is made from them goes into the user's cache.
"""

from __future__ import annotations

import os
from functools import cache

from ptxdsl.diagnostics import error
from ptxdsl.files.digest import fingerprint

_PACKAGE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_GENERATED = os.path.join(_PACKAGE, "_generated")


@cache
def folder(kind: str) -> str:
    """The path of the folder ``grammar``, ``stdlib`` or ``samples``. Raises E1090 when the installation is damaged, and
    in an archive that Python imports from."""
    for root in (_PACKAGE, os.path.dirname(_PACKAGE)):
        path = os.path.join(root, kind)
        if os.path.isdir(path):
            return path
    if os.path.isdir(_PACKAGE):
        message, help = f"the {kind} folder of ptxdsl is missing", "the installation is damaged: install ptxdsl again"
    else:
        message = f"ptxdsl cannot work inside an archive: '{_PACKAGE}' is not a folder"
        help = "unpack it, or install it"
    raise error("E1090", message, None, help=help)


@cache
def grammar_text() -> str:
    """The text of ``grammar/pdsl.lark``."""
    return _text(os.path.join(folder("grammar"), "pdsl.lark"))


@cache
def stdlib_names() -> tuple[str, ...]:
    """The names of the standard library's modules, sorted."""
    return tuple(sorted(name[: -len(".pdsl")] for name in os.listdir(folder("stdlib")) if name.endswith(".pdsl")))


def stdlib_text(name: str) -> str:
    """The text of the standard library's module ``name``, one of ``stdlib_names()``."""
    return _text(_stdlib_path(name))


def stdlib_version(name: str) -> str:
    """What tells the text of the standard library's module ``name`` from its other versions."""
    return fingerprint(_bytes(_stdlib_path(name)))


@cache
def syntax_version() -> str:
    """What tells the grammar, and the code that makes trees by it, from their other versions."""
    parts = [fingerprint(grammar_text().encode())]
    syntax = os.path.join(_PACKAGE, "syntax")
    code = [os.path.join(syntax, name) for name in sorted(os.listdir(syntax)) if name.endswith(".py")]
    for path in (os.path.join(_PACKAGE, "source.py"), *code):
        parts += [os.path.basename(path), fingerprint(_bytes(path))]
    return " ".join(parts)


def prebuilt(name: str) -> bytes | None:
    """What the wheel ships under this name, in the cache's entry format; None in a checkout."""
    try:
        return _bytes(os.path.join(_GENERATED, name))
    except OSError:
        return None


def _stdlib_path(name: str) -> str:
    return os.path.join(folder("stdlib"), f"{name}.pdsl")


def _bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
