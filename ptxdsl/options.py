"""The options of one compilation: everything besides the text that the PTX is a function of."""

from __future__ import annotations

from typing import Literal

from ptxdsl.record import dataclass

WaitForm = Literal["try", "probe"]


@dataclass(frozen=True)
class Options:
    """arch: a key of ``targets.TARGETS``. ptx_version: ``(8, 6)``, or None for the lowest that the target needs.

    wait: ``try`` is a ``try_wait`` loop, ``probe`` one ``test_wait`` before it. contract: fuse ``a * b + c`` to fma.
    lineinfo: keep ``.loc`` lines. ring_unroll: unroll ring loops by their stage count (``rings.py``).
    """

    arch: str = "sm_90a"
    ptx_version: tuple[int, int] | None = None
    wait: WaitForm = "try"
    contract: bool = True
    lineinfo: bool = False
    ring_unroll: bool = True
    check: Literal["off", "warn", "error"] = "warn"
