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
_UNWRITTEN = "it looks for races, and not for what is read before anybody has written it"


def _at(launch: str) -> str:
    return f"it was asked for one launch, and the fault is that of {launch}: there it agrees"


# Why the two differ, as experiments with changed kernels and launches, and its documentation, say.
REASONS = {
    "01_count_of_softmax_warps_fixed": _ELECTION,
    "warps_release_elected": _ELECTION,
    "17_all_lanes_arrive_fixed": _ELECTION,
    "17_one_lane_arrives_fixed": _ELECTION,
    "17_one_lane_arrives": _ELECTION,
    "04_turn_in_a_byte": _at("n = 257"),
    "05_negative_as_unsigned": "the fault is that of n = -1, which to the producer are 2^32 - 1 turns: too many for it",
    "05_one_more_for_one_length": _at("n = 7"),
    "05_peeled_wait": _at("n = 0"),
    "05_quotient_is_overtaken": _at("n = 7, m = 6"),
    "05_quotient_of_a_negative": _at("n = -1"),
    "05_twice_the_turn": _at("n = 11"),
    "11_load_without_proxy_fence": _FENCES,
    "11_store_without_proxy_fence": _FENCES,
    "12_fence_by_another_thread": _FENCES,
    "24_read_without_proxy_fence": _FENCES,
    "13_barriers_as_data": _OVER,
    "13_copy_over_barriers": _OVER,
    "13_table_of_one_side": _OVER,
    "22_handed_over_again": _UNWRITTEN,
    "22_handed_over_unfilled": _UNWRITTEN,
    "22_table_never_made": _UNWRITTEN,
    "25_load_nobody_waits_for": "it does not look at what is under way at the exit",
    "16_lanes_part_before_it": "it lets lanes of a warp come to a barrier by different instructions",
    "27_more_registers_than_there_are": "it does not count registers",
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
