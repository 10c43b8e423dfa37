"""The 64-bit word of an mbarrier, and the state tokens that arrivals return (``layout`` has where their fields lie)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ptxdsl.sim.layout import (
    COUNT_FIELD,
    EXPECTED_SHIFT,
    LANES,
    PARITY_SHIFT,
    PENDING_SHIFT,
    TOKEN_PHASE,
    TX_FIELD,
    TX_SHIFT,
)


def pack(phase: int, pending: int, tx: int, expected: int) -> int:
    """The word of a barrier."""
    return (
        (phase & 1) << PARITY_SHIFT
        | (-pending & COUNT_FIELD) << PENDING_SHIFT
        | (-tx & TX_FIELD) << TX_SHIFT
        | (-expected & COUNT_FIELD) << EXPECTED_SHIFT
    )


def token(phase: int, pending: int) -> int:
    """What an arrive that found this phase and pending count returns."""
    return (phase & 1) << PARITY_SHIFT | (-pending & COUNT_FIELD) << PENDING_SHIFT | phase & TOKEN_PHASE


def token_pending(state: int) -> int:
    """``mbarrier.pending_count``."""
    return -(state >> PENDING_SHIFT) & COUNT_FIELD


def tokens(first: int, mask: int, count: int) -> npt.NDArray[np.uint64]:
    """The states of 32 lanes of which those of a mask arrived one after another, ``count`` times each."""
    return _steps(mask, count) + np.uint64(first)


@lru_cache(1024)
def _steps(mask: int, count: int) -> npt.NDArray[np.uint64]:
    """What each lane's state has more than the first one's: the arrivals of the lanes of a mask before it."""
    before = np.array([(mask & (1 << lane) - 1).bit_count() for lane in range(LANES)], np.uint64)
    return before * np.uint64(count << PENDING_SHIFT)
