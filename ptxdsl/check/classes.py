"""The classes of findings, each with the code under which it is reported and explained.

The proof, the trace check and the exploration use the same ones, so that a fault has the same name whoever finds it.
"""

from __future__ import annotations

MISSING_ARRIVE = "missing arrive"
WRONG_COUNT = "wrong arrival count"
WRONG_PARITY = "wrong parity"
BYTE_MISMATCH = "byte mismatch"
EARLY_USE = "use before init is visible"
LIVE_REINIT = "re-init or inval while live"
READ_BEFORE_FULL = "slot read before full"
OVERWRITTEN = "slot overwritten before release"
PROXY_FENCE = "missing proxy fence"
UNDRAINED = "undrained wgmma, bulk or cp.async read"
STALE_STAGE = "stale stage index"
CYCLIC_WAIT = "cyclic wait"
EXIT_IN_FLIGHT = "exit with work in flight"
DIVERGENT = "divergent collective"
DATA_RACE = "data race"  # of memory that is no slot of a pipeline

CODES = {
    MISSING_ARRIVE: "E1201",
    WRONG_COUNT: "E1202",
    WRONG_PARITY: "E1203",
    BYTE_MISMATCH: "E1204",
    EARLY_USE: "E1205",
    LIVE_REINIT: "E1206",
    READ_BEFORE_FULL: "E1207",
    OVERWRITTEN: "E1208",
    PROXY_FENCE: "E1209",
    UNDRAINED: "E1210",
    STALE_STAGE: "E1211",
    CYCLIC_WAIT: "E1212",
    EXIT_IN_FLIGHT: "E1213",
    DIVERGENT: "E1214",
    DATA_RACE: "E1215",
}
