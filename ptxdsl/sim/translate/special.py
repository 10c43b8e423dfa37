"""Special registers. Source: PTX ISA, "Special Registers".

What names hardware that the simulator has not (performance counters, environment registers, the grid's number) is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ptxdsl.record import dataclass
from ptxdsl.sim.layout import CTA, LANES, LAUNCH, WARP, offset
from ptxdsl.sim.translate.emitter import WIDTH, splat, vector

if TYPE_CHECKING:
    from ptxdsl.sim.translate.lanes import LaneEmitter

Reader = Callable[["LaneEmitter"], str]


@dataclass(frozen=True, slots=True)
class Special:
    """element: LLVM's type of a lane. read: emits its value as a vector. changes: two reads may differ."""

    element: str
    read: Reader
    changes: bool = False


def broadcast(e: LaneEmitter, scalar: str, element: str) -> str:
    """A scalar in all lanes."""
    first = e.do(f"insertelement {vector(element)} poison, {element} {scalar}, i64 0")
    return e.do(f"shufflevector {vector(element)} {first}, {vector(element)} poison, <{WIDTH} x i32> zeroinitializer")


def _field(e: LaneEmitter, record: str, byte: int, type: str = "i32") -> str:
    pointer = e.do(f"getelementptr i8, ptr %{record}, i64 {byte}")
    return e.do(f"load {type}, ptr {pointer}, align 4")


def _uniform(record: str, byte: int) -> Special:
    return Special("i32", lambda e: broadcast(e, _field(e, record, byte), "i32"))


def _constant(value: int, element: str = "i32") -> Special:
    return Special(element, lambda e: splat(element, value))


def _tid(component: int) -> Special:
    def read(e: LaneEmitter) -> str:
        base = e.do(f"getelementptr i8, ptr %warp, i64 {offset(WARP, 'tid') + 4 * LANES * component}")
        pointer = e.do(f"getelementptr i32, ptr {base}, i64 {e.index}")
        return e.do(f"load {vector('i32')}, ptr {pointer}, align 4")

    return Special("i32", read)


def lane_ids(e: LaneEmitter) -> str:
    """%laneid."""
    first = e.do(f"trunc i64 {e.index} to i32")
    steps = "<" + ", ".join(f"i32 {lane}" for lane in range(WIDTH)) + ">"
    return e.do(f"add {vector('i32')} {broadcast(e, first, 'i32')}, {steps}")


def _lane_mask(kind: str) -> Special:
    def read(e: LaneEmitter) -> str:
        type = vector("i32")
        equal = e.do(f"shl {type} {splat('i32', 1)}, {lane_ids(e)}")
        less = e.do(f"sub {type} {equal}, {splat('i32', 1)}")
        if kind == "eq":
            return equal
        if kind == "lt":
            return less
        if kind == "le":
            return e.do(f"or {type} {less}, {equal}")
        if kind == "ge":
            return e.do(f"xor {type} {less}, {splat('i32', -1)}")
        both = e.do(f"or {type} {less}, {equal}")
        return e.do(f"xor {type} {both}, {splat('i32', -1)}")

    return Special("i32", read)


def _time(e: LaneEmitter) -> str:
    """The machine's time, and one cycle for every warp instruction since this run began (scalar i64)."""
    clock = _field(e, "launch", offset(LAUNCH, "clock"), "i64")
    issued = _field(e, "warp", offset(WARP, "issued"), "i64")
    start = _field(e, "warp", offset(WARP, "issued_before"), "i64")
    passed = e.do(f"sub i64 {e.do(f'sub i64 {issued}, {start}')}, {e.ahead}")
    return e.do(f"add i64 {clock}, {passed}")


def _clock(part: str) -> Special:
    def read(e: LaneEmitter) -> str:
        time = _time(e)
        if part == "64":
            return broadcast(e, time, "i64")
        if part == "high":
            time = e.do(f"lshr i64 {time}, 32")
        return broadcast(e, e.do(f"trunc i64 {time} to i32"), "i32")

    return Special("i64" if part == "64" else "i32", read, changes=True)


def _product(record: str, byte: int) -> Special:
    def read(e: LaneEmitter) -> str:
        x, y, z = (_field(e, record, byte + 4 * i) for i in range(3))
        return broadcast(e, e.do(f"mul i32 {e.do(f'mul i32 {x}, {y}')}, {z}"), "i32")

    return Special("i32", read)


def _warps(e: LaneEmitter) -> str:
    x, y, z = (_field(e, "launch", offset(LAUNCH, "thread_count") + 4 * i) for i in range(3))
    threads = e.do(f"mul i32 {e.do(f'mul i32 {x}, {y}')}, {z}")
    rounded = e.do(f"add i32 {threads}, {LANES - 1}")
    return broadcast(e, e.do(f"lshr i32 {rounded}, 5"), "i32")


def _explicit_cluster(e: LaneEmitter) -> str:
    x, y, z = (_field(e, "launch", offset(LAUNCH, "cluster_shape") + 4 * i) for i in range(3))
    size = e.do(f"mul i32 {e.do(f'mul i32 {x}, {y}')}, {z}")
    return broadcast(e, e.do(f"icmp ugt i32 {size}, 1"), "i1")


def _table() -> dict[str, Special]:
    table: dict[str, Special] = {}
    for i, component in enumerate("xyz"):
        table[f"%tid.{component}"] = _tid(i)
    triples = {
        "ntid": ("launch", offset(LAUNCH, "thread_count")),
        "nctaid": ("launch", offset(LAUNCH, "cta_count")),
        "cluster_nctaid": ("launch", offset(LAUNCH, "cluster_shape")),
        "nclusterid": ("launch", offset(LAUNCH, "cluster_count")),
        "ctaid": ("cta", offset(CTA, "id")),
        "clusterid": ("cta", offset(CTA, "cluster_id")),
        "cluster_ctaid": ("cta", offset(CTA, "cluster_cta_id")),
    }
    for name, (record, byte) in triples.items():
        for i, component in enumerate("xyz"):
            table[f"%{name}.{component}"] = _uniform(record, byte + 4 * i)
    for name in ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid"):
        table[f"%{name}.w"] = _constant(1 if name.removeprefix("cluster_").startswith("n") else 0)
        table[f"%{name}"] = table[f"%{name}.x"]
    for kind in ("eq", "lt", "le", "ge", "gt"):
        table[f"%lanemask_{kind}"] = _lane_mask(kind)
    for name, part in (("clock", "low"), ("clock_hi", "high"), ("clock64", "64")):
        table[f"%{name}"] = _clock(part)
    for name, part in (("globaltimer_lo", "low"), ("globaltimer_hi", "high"), ("globaltimer", "64")):
        table[f"%{name}"] = _clock(part)
    for i in range(8):
        table[f"%pm{i}"] = _constant(0)
        table[f"%pm{i}_64"] = _constant(0, "i64")
    for i in range(32):
        table[f"%envreg{i}"] = _constant(0)
    table["%laneid"] = Special("i32", lane_ids)
    table["%warpid"] = _uniform("warp", offset(WARP, "index"))
    table["%nwarpid"] = Special("i32", _warps)
    table["%smid"] = _uniform("cta", offset(CTA, "smid"))
    table["%nsmid"] = _constant(132)
    table["%gridid"] = _constant(0, "i64")
    table["%cluster_ctarank"] = _uniform("cta", offset(CTA, "rank"))
    table["%cluster_nctarank"] = _product("launch", offset(LAUNCH, "cluster_shape"))
    table["%is_explicit_cluster"] = Special("i1", _explicit_cluster)
    table["%dynamic_smem_size"] = _uniform("launch", offset(LAUNCH, "dynamic_shared"))
    table["%total_smem_size"] = _uniform("launch", offset(LAUNCH, "total_shared"))
    table["%aggr_smem_size"] = table["%total_smem_size"]
    table["%reserved_smem_offset_begin"] = _constant(0)
    table["%reserved_smem_offset_end"] = _constant(1024)
    table["%reserved_smem_offset_cap"] = _constant(1024)
    table["%reserved_smem_offset_0"] = _constant(0)
    table["%reserved_smem_offset_1"] = _constant(0)
    table["%current_graph_exec"] = _constant(0, "i64")
    return table


SPECIAL = _table()
