"""SentryWard's verdicts beside the checker's, on the PTX of the same kernels for one launch with known scalars."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from corpus import Entry

SECONDS = 20
SAYS_RIGHT, SAYS_WRONG = ("race_free", "verified"), ("potential_race", "not_wellsynced", "invalid_lifecycle")
_ELECTION = "every lane is the elected one to it: with `lane == 0` it agrees"
_FENCES = "it models no fences"
_OVER = "it does not look at data that is written over barriers"
# Why the two differ, as experiments with changed kernels and its documentation say.
REASONS = {
    "warps_release_elected": _ELECTION,
    "17_all_lanes_arrive_fixed": _ELECTION,
    "17_one_lane_arrives_fixed": _ELECTION,
    "17_one_lane_arrives": _ELECTION,
    "05_peeled_wait": "it was asked for one n, and the fault is that of n = 0: there it agrees",
    "11_load_without_proxy_fence": _FENCES,
    "11_store_without_proxy_fence": _FENCES,
    "12_fence_by_another_thread": _FENCES,
    "24_read_without_proxy_fence": _FENCES,
    "13_barriers_as_data": _OVER,
    "13_copy_over_barriers": _OVER,
    "25_load_nobody_waits_for": "it does not look at what is under way at the exit",
}


def compare(command: str, entries: Sequence[Entry]) -> None:
    """Prints how far the two agree, and each difference with its reason where one is known."""
    counts: Counter[str] = Counter()
    differences = []
    seconds = 0.0
    for entry in entries:
        if any(argument.box for argument in entry.arguments):
            counts["not asked (tensor maps)"] += 1
            continue
        start = time.monotonic()
        said, words = _ask(command, entry)
        seconds += time.monotonic() - start
        if said not in (*SAYS_RIGHT, *SAYS_WRONG):
            counts[f"no verdict: {said}"] += 1
        elif (said in SAYS_RIGHT) == (entry.verdict != "fault"):
            counts["agree"] += 1
        else:
            counts["differ"] += 1
            differences.append(f"{entry.name}: {said}; {REASONS.get(entry.name, f'not explained: {words}')}")
    print(f"SentryWard: {', '.join(f'{number} {what}' for what, number in counts.most_common())}; {seconds:.0f} s")
    for line in differences:
        print(f"  {line}")


def _ask(command: str, entry: Entry) -> tuple[str, str]:
    """Its result and the message of its first diagnostic."""
    known = entry.small()
    made = entry.compiled(known, arch="sm_100a")
    (signature,) = made.signatures.values()
    scalars = [
        {"parameter": f"{signature.name}_param_{number}", "type": "u32", "value": known[argument.name]}
        for number, argument in enumerate(entry.arguments)
        if argument.size is None
    ]
    launch = {"grid_dim": [entry.grid, 1, 1], "block_dim": [entry.block, 1, 1], "dynamic_shared_bytes": entry.smem}
    launch["cluster_dim"] = list(signature.cluster or (1, 1, 1))
    with tempfile.TemporaryDirectory() as folder:
        ptx, given = Path(folder) / "kernel.ptx", Path(folder) / "input.json"
        ptx.write_text(made.ptx, encoding="utf-8")
        given.write_text(json.dumps({"schema": "spverify.kernel-input/v1", "launch": launch, "arguments": scalars}))
        line = [command, str(ptx), "--input", str(given), "--timeout", str(SECONDS)]
        answer = json.loads(subprocess.run(line, capture_output=True, text=True, check=False).stdout)
    found = answer.get("diagnostics") or [{}]
    return answer["result"], str(found[0].get("message", ""))
