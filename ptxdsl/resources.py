"""Where the grammar and the standard library lie: in a wheel, a checkout or an editable install.

In a wheel they are inside the package (``ptxdsl/grammar``, ``ptxdsl/stdlib``), together with what was made from them
when the wheel was built (``ptxdsl/_generated``). In a checkout, and so in an editable install, they are the top-level
folders beside the package, and what is made from them goes into the user's cache.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from ptxdsl.diagnostics import error

_PACKAGE = Path(__file__).resolve().parent
_GENERATED = _PACKAGE / "_generated"

# What the parsed form of a text depends on besides the grammar: a change there must not meet trees of yesterday.
_SYNTAX_CODE = ("source.py", "syntax/*.py")


@cache
def folder(kind: str) -> Path:
    """The folder ``grammar`` or ``stdlib``. Raises E1090 when the installation is damaged."""
    for root in (_PACKAGE, _PACKAGE.parent):
        if (root / kind).is_dir():
            return root / kind
    raise error(
        "E1090",
        f"the {kind} folder of ptxdsl is missing",
        None,
        help="the installation is damaged: install ptxdsl again",
    )


@cache
def grammar_text() -> str:
    """The text of ``grammar/pdsl.lark``."""
    return (folder("grammar") / "pdsl.lark").read_text(encoding="utf-8")


@cache
def stdlib_names() -> tuple[str, ...]:
    """The names of the standard library's modules, sorted."""
    return tuple(sorted(p.stem for p in folder("stdlib").glob("*.pdsl")))


def stdlib_text(name: str) -> str:
    """The text of the standard library's module ``name``, one of ``stdlib_names()``."""
    return (folder("stdlib") / f"{name}.pdsl").read_text(encoding="utf-8")


@cache
def syntax_digest() -> str:
    """A digest of the grammar and of the code that makes trees by it (64 hexadecimal digits)."""
    digest = hashlib.sha256(grammar_text().encode())
    for pattern in _SYNTAX_CODE:
        for path in sorted(_PACKAGE.glob(pattern)):
            digest.update(path.name.encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def prebuilt(name: str) -> bytes | None:
    """What the wheel ships under this name, in the cache's entry format; None in a checkout."""
    try:
        return (_GENERATED / name).read_bytes()
    except OSError:
        return None
