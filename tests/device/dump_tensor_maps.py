"""Dumps what the driver and the card make of tensor maps, as JSON, for the simulator's tests.

Run on a machine with a GPU of compute capability 9.0 or later, with cuda-python and NumPy:

    python3 tests/device/dump_tensor_maps.py > tests/sim/data/tensor_maps.json

``encodings``: parameters, the driver's result, the 128 bytes. ``loads`` and ``stores``: tensor copies of one tile; the
16 KiB of shared memory after a load (0xEE before), the 32 KiB of global memory after a store, and of a load the raw
mbarrier word, that had 2^19 bytes expected before. Memory images are zlib-compressed base64.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from card import Card
from tensor_map_cases import DATA_TYPES, FILLS, INTERLEAVES, PROMOTIONS, SWIZZLES, encodings, loads, stores

SHARED_BYTES = 16384
GLOBAL_BYTES = 32768
HEADER = ".version 8.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 tile[];\n"

# Threads 0 … 127 fill the tile, thread 0 copies, all write the tile and the barrier's word to `out`.
LOAD = """
.visible .entry load(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 offset, .param .align 4 .b8 at[20])
{{
.reg .b32 t, i, a, base, bar, w, c<5>; .reg .b64 o, m, d; .reg .pred p, others;
.shared .align 8 .b64 barrier;
mov.u32 t, %tid.x; mov.u32 base, tile; add.u32 base, base, 1023; and.b32 base, base, 0xfffffc00;
mov.u32 bar, barrier; ld.param.u64 o, [out]; cvta.to.global.u64 o, o;
mov.u32 i, t;
FILL: shl.b32 a, i, 2; add.u32 a, a, base; st.shared.u32 [a], 0xeeeeeeee;
add.u32 i, i, 128; setp.lt.u32 p, i, 4096; @p bra FILL;
setp.ne.u32 others, t, 0;
@others bra FILLED;
mbarrier.init.shared::cta.b64 [bar], 1;
fence.mbarrier_init.release.cluster;
FILLED: fence.proxy.async; bar.sync 0;
@others bra DONE;
mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 524288;
mov.u64 m, map; cvta.param.u64 m, m; ld.param.u32 a, [offset]; add.u32 a, a, base;
{coordinates}
cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [a], [m, {{{names}}}], [bar];
mov.u32 i, 0;
WAIT: nanosleep.u32 1000; add.u32 i, i, 1; setp.lt.u32 p, i, 300; @p bra WAIT;
fence.proxy.async;
DONE: bar.sync 0;
@!others mbarrier.inval.shared::cta.b64 [bar];
bar.sync 0;
mov.u32 i, t;
DUMP: shl.b32 a, i, 2; add.u32 w, a, base; cvt.u64.u32 d, a; add.u64 d, d, o; ld.shared.u32 w, [w];
st.global.u32 [d], w; add.u32 i, i, 128; setp.lt.u32 p, i, 4096; @p bra DUMP;
@others bra END;
ld.shared.b64 d, [bar]; st.global.b64 [o+16384], d;
END: ret;
}}
"""

STORE = """
.visible .entry store(.param .align 64 .b8 map[128], .param .u32 offset, .param .align 4 .b8 at[20])
{{
.reg .b32 t, i, a, b, base, c<5>; .reg .b64 m; .reg .pred p;
mov.u32 t, %tid.x; mov.u32 base, tile; add.u32 base, base, 1023; and.b32 base, base, 0xfffffc00;
mov.u32 i, t;
FILL: shl.b32 a, i, 2; add.u32 a, a, base; mul.lo.u32 b, i, 0x20002; add.u32 b, b, 0x10000; st.shared.u32 [a], b;
add.u32 i, i, 128; setp.lt.u32 p, i, 4096; @p bra FILL;
fence.proxy.async; bar.sync 0;
setp.ne.u32 p, t, 0; @p bra END;
mov.u64 m, map; cvta.param.u64 m, m; ld.param.u32 a, [offset]; add.u32 a, a, base;
{coordinates}
{opcode} [m, {{{names}}}], [a];
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
END: ret;
}}
"""


def coordinates(rank: int) -> dict[str, Any]:
    names = [f"c{i}" for i in range(rank)]
    text = " ".join(f"ld.param.u32 {name}, [at+{4 * i}];" for i, name in enumerate(names))
    return {"rank": rank, "coordinates": text, "names": ", ".join(names)}


def encode(card: Card, parameters: dict[str, Any], base: int = 0) -> tuple[str, bytes]:
    cu, order = card.cu, [name for name, _ in DATA_TYPES]
    rank = len(parameters["dims"])
    status, made = cu.cuTensorMapEncodeTiled(
        cu.CUtensorMapDataType(order.index(parameters["data_type"])),
        rank,
        base + parameters["address"],
        [cu.cuuint64_t(v) for v in parameters["dims"]],
        [cu.cuuint64_t(v) for v in parameters["strides"] or [0]],  # rank 1: not looked at, but must be there
        [cu.cuuint32_t(v) for v in parameters["box"]],
        [cu.cuuint32_t(v) for v in parameters["element_strides"]],
        cu.CUtensorMapInterleave(INTERLEAVES.index(parameters["interleave"])),
        cu.CUtensorMapSwizzle(SWIZZLES.index(parameters["swizzle"])),
        cu.CUtensorMapL2promotion(PROMOTIONS.index(parameters["l2_promotion"])),
        cu.CUtensorMapFloatOOBfill(FILLS.index(parameters["fill"])),
    )
    if status != cu.CUresult.CUDA_SUCCESS:
        return status.name, b""
    words = np.array([int(word) for word in made.opaque], np.uint64)
    return status.name, words.tobytes()


def packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode()


# f32 patterns: zeros, subnormals, mantissas that tf32 would round or cut, the largest, infinities, NaNs
FLOATS = (
    "0 80000000 1 80000001 7fffff 800000 3f800001 3f801000 3f801001 3f803000 3f800fff bf801fff 7f7fffff 7f800000 "
    "ff800000 7fc00000 7f800001 ffffffff"
)


def contents(kind: str) -> np.ndarray:
    """The global array before a copy, 32 KiB."""
    if kind == "floats":
        patterns = np.array([int(word, 16) for word in FLOATS.split()], np.uint32)
        return np.resize(patterns, GLOBAL_BYTES // 4).view(np.uint8)
    return np.arange(GLOBAL_BYTES // 2, dtype=np.uint16).view(np.uint8)


def run_load(card: Card, case: dict[str, Any]) -> dict[str, Any]:
    card.write(card.memory, contents(case["data"]))
    status, data = encode(card, case["map"], card.memory)
    if not data:
        return case | {"result": status}
    rank = len(case["at"])
    kernel = card.kernel(HEADER + LOAD.format(**coordinates(rank)), "load")
    out = card.memory + GLOBAL_BYTES
    card.launch(kernel, [data, out, case["offset"], np.array(case["at"] + [0] * (5 - rank), np.int32)], 20480)
    image = card.read(out, SHARED_BYTES + 8)
    word = int.from_bytes(image[SHARED_BYTES:].tobytes(), "little")
    return case | {"result": status, "shared": packed(image[:SHARED_BYTES].tobytes()), "barrier": f"{word:016x}"}


def run_store(card: Card, case: dict[str, Any]) -> dict[str, Any]:
    before = contents("index") if case["reduce"] else np.full(GLOBAL_BYTES, 0xEE, np.uint8)
    card.write(card.memory, before)
    status, data = encode(card, case["map"], card.memory)
    if not data:
        return case | {"result": status}
    rank = len(case["at"])
    opcode = f"cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group"
    if case["reduce"]:
        opcode = f"cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{case['reduce']}.tile.bulk_group"
    kernel = card.kernel(HEADER + STORE.format(opcode=opcode, **coordinates(rank)), "store")
    card.launch(kernel, [data, case["offset"], np.array(case["at"] + [0] * (5 - rank), np.int32)], 20480)
    return case | {"result": status, "global": packed(card.read(card.memory, GLOBAL_BYTES).tobytes())}


COPIES = {"loads": (loads, run_load), "stores": (stores, run_store)}


def copies(kind: str, first: int = 0) -> list[dict[str, Any]]:
    """The results from case ``first`` on. A copy that the card refuses ends the process's context: another goes on."""
    make, run = COPIES[kind]
    card, results = Card(2 * GLOBAL_BYTES), []
    for number, case in enumerate(make()[first:], first):
        try:
            results.append(run(card, case))
        except RuntimeError as problem:
            results.append(case | {"result": str(problem)})
            return results + copies_in_process(kind, number + 1)
    return results


def copies_in_process(kind: str, first: int = 0) -> list[dict[str, Any]]:
    """The same in a process of its own: a context that a copy has ended is of no use afterwards."""
    command = [sys.executable, __file__, kind, str(first)]
    found: list[dict[str, Any]] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return found


def main() -> None:
    if len(sys.argv) == 3:
        json.dump(copies(sys.argv[1], int(sys.argv[2])), sys.stdout)
        return
    card = Card(2 * GLOBAL_BYTES)
    encoded = []
    for parameters in encodings():
        status, data = encode(card, parameters)
        encoded.append(parameters | {"result": status, "bytes": data.hex()})
    whole = {"device": card.name, "driver": card.driver_version, "encodings": encoded}
    json.dump(whole | {kind: copies_in_process(kind) for kind in COPIES}, sys.stdout, indent=0)


if __name__ == "__main__":
    main()
