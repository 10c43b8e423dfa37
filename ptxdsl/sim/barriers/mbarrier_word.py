"""The 64-bit word of an mbarrier, and the state tokens that arrivals return: how their fields lie.

The fields of the word are as read on an H200 after mbarrier.inval; its counts are negative: they count up to zero.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ptxdsl.sim.layout import LANES

_FIELD = (1 << 20) - 1
_EXPECTED_SHIFT = 1
_TX_SHIFT, _TX_FIELD = 21, (1 << 21) - 1
_PENDING_SHIFT = 43
_PARITY_SHIFT = 63
# A state token (what an arrive returns) has parity and pending count where the word has them, and below them the
# whole number of the phase: a token of a phase long past is told from a good one.
TOKEN_PHASE = (1 << _PENDING_SHIFT) - 1


def pack(phase: int, pending: int, tx: int, expected: int) -> int:
    """The word of a barrier."""
    return (
        (phase & 1) << _PARITY_SHIFT
        | (-pending & _FIELD) << _PENDING_SHIFT
        | (-tx & _TX_FIELD) << _TX_SHIFT
        | (-expected & _FIELD) << _EXPECTED_SHIFT
    )


def token(phase: int, pending: int) -> int:
    """What an arrive that found this phase and pending count returns."""
    return (phase & 1) << _PARITY_SHIFT | (-pending & _FIELD) << _PENDING_SHIFT | phase & TOKEN_PHASE


def token_pending(state: int) -> int:
    """``mbarrier.pending_count``."""
    return -(state >> _PENDING_SHIFT) & _FIELD


def tokens(first: int, mask: int, count: int) -> npt.NDArray[np.uint64]:
    """The states of 32 lanes of which those of a mask arrived one after another, ``count`` times each."""
    return _steps(mask, count) + np.uint64(first)


@lru_cache(1024)
def _steps(mask: int, count: int) -> npt.NDArray[np.uint64]:
    """What each lane's state has more than the first one's: the arrivals of the lanes of a mask before it."""
    before = np.array([(mask & (1 << lane) - 1).bit_count() for lane in range(LANES)], np.uint64)
    return before * np.uint64(count << _PENDING_SHIFT)
