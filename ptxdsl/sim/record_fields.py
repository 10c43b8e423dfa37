"""Fields of the records of ``layout`` as attributes of the objects whose records they are."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ptxdsl.sim.layout import offset


class Owner(Protocol):
    """Whose record is seen as 32-bit and as 64-bit numbers (``layout.cells``)."""

    words: memoryview
    quads: memoryview


class Word:
    """A field of 32 bits."""

    def __init__(self, record: np.dtype, name: str) -> None:
        self._at = offset(record, name) // 4

    def __get__(self, owner: Owner, kind: type | None = None) -> int:
        value: int = owner.words[self._at]
        return value

    def __set__(self, owner: Owner, value: int) -> None:
        owner.words[self._at] = value


class Quad:
    """One of 64 bits."""

    def __init__(self, record: np.dtype, name: str) -> None:
        self._at = offset(record, name) // 8

    def __get__(self, owner: Owner, kind: type | None = None) -> int:
        value: int = owner.quads[self._at]
        return value

    def __set__(self, owner: Owner, value: int) -> None:
        owner.quads[self._at] = value
