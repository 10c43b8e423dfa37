"""Bytes to Source: the text of a file as every later stage counts it."""

from __future__ import annotations

import codecs
import os

from ptxdsl.diagnostics import error
from ptxdsl.source import Source, Span


def read_source(origin: str | os.PathLike[str] | bytes, name: str | None = None) -> Source:
    """Reads a file, or takes the bytes of one (``name`` is what diagnostics show).

    A byte order mark is dropped; ``\\r\\n`` and ``\\r`` line ends become ``\\n``. Raises CompileError E0101 where the
    bytes are not UTF-8; OSError is the caller's.
    """
    if isinstance(origin, bytes):
        data, shown = origin, name or "<bytes>"
    else:
        with open(origin, "rb") as file:
            data, shown = file.read(), name or os.fspath(origin)
    if data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
    try:
        return Source(shown, _unix(data.decode()))
    except UnicodeDecodeError as failure:
        offset = failure.start
        # The text for the caret, with one character in place of each byte that is wrong.
        before = _unix(data[:offset].decode())
        text = before + "\N{REPLACEMENT CHARACTER}" + _unix(data[offset + 1 :].decode(errors="replace"))
        span = Span(Source(shown, text), len(before), len(before) + 1)
        help = "save the file as UTF-8"
        if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            help = "this looks like UTF-16; save the file as UTF-8"
        raise error(
            "E0101", f"byte 0x{data[offset]:02x} at offset {offset} is not UTF-8 text", span, help=help
        ) from None


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
