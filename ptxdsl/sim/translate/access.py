"""Loads, stores and addresses in lane-wise code.

Source: PTX ISA, "Data Movement and Conversion Instructions": ld, st, ldu, cvta, isspacep, mapa, getctarank, mov.
"""

from __future__ import annotations

from ptxdsl.ptx.module import TYPE_BYTES, Address, Instruction, Operand, Sink, Symbol, Vector
from ptxdsl.record import dataclass
from ptxdsl.sim.layout import (
    GLOBAL_BASE,
    GRANULE_SHIFT,
    LAUNCH,
    LOCAL_WINDOW,
    PARAMETERS,
    RANK_SHIFT,
    SHARED_WINDOW,
    SPACES,
    VARIABLES,
    WARP,
    offset,
)
from ptxdsl.sim.translate.emitter import WIDTH, Unsupported, splat, vector
from ptxdsl.sim.translate.lanes import LaneEmitter
from ptxdsl.sim.translate.runtime_pointers import FENCE, WRITE
from ptxdsl.sim.translate.special import broadcast

# Types that memory is accessed by.
TYPES = frozenset((
    *(f"{kind}{bits}" for kind in "bus" for bits in (8, 16, 32, 64)), "f16", "bf16", "f32", "f64", "f16x2", "bf16x2",
    "b128",
))  # fmt: skip
_SPACES = {
    "global": "global", "const": "global", "param": "global", "param::entry": "global",
    "shared": "shared", "shared::cta": "shared", "shared::cluster": "cluster", "local": "local",
}  # fmt: skip
# What does not change what an access does here: memory is sequentially consistent, and there are no caches.
_IGNORED = frozenset((
    "weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", "cta", "cluster", "gpu", "sys",
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "unified", "noftz",
))  # fmt: skip
_CACHE = ("L1::", "L2::", "level::")

Lanes64 = vector("i64")


@dataclass(frozen=True, slots=True)
class Access:
    """An access's opcode, taken apart. rest: parts that are not modifiers of memory accesses."""

    space: str
    type: str
    count: int
    rest: tuple[str, ...]

    @property
    def bits(self) -> int:
        return 8 * TYPE_BYTES[self.type]

    @property
    def bytes(self) -> int:
        """Of one lane's access."""
        return self.bits // 8 * self.count


def parse(instruction: Instruction) -> Access:
    """Raises Unsupported for a type that memory does not hold."""
    parts = instruction.parts
    space, count = "generic", 1
    rest: list[str] = []
    for part in parts[1:-1]:
        if part in _SPACES:
            space = _SPACES[part]
        elif part in ("v2", "v4", "v8"):
            count = int(part[1])
        elif part not in _IGNORED and not part.startswith(_CACHE):
            rest.append(part)
    if parts[-1] not in TYPES:
        raise Unsupported(f"type .{parts[-1]}")
    return Access(space, parts[-1], count, tuple(rest))


def pointers(e: LaneEmitter, access: Access, address: str, kind: int) -> str:
    """The host pointers of a chunk's lanes, as i64; the fault of the first that is wrong is recorded.

    kind: 0 to read, WRITE, or WRITE | ATOMIC."""
    e.accesses = True
    how = access.bytes | kind
    if e.traced:
        space = SPACES[access.space]
        e.run(
            f"call void @rt.trace(ptr %warp, i64 {e.index}, i8 {e.active()}, {Lanes64} {address}, i32 {how}, "
            f"i32 {space}, i32 {e.site})"
        )
    return e.do(
        f"call {Lanes64} @rt.pointers_{access.space}(ptr %warp, i64 {e.index}, i8 {e.active()}, {Lanes64} {address}, "
        f"i32 {how}, i32 {e.site})"
    )


def trace_fence(e: LaneEmitter, site: int) -> None:
    """Appends a fence to the access log."""
    e.run(
        f"call void @rt.trace(ptr %warp, i64 {e.index}, i8 {e.active()}, {Lanes64} zeroinitializer, i32 {FENCE}, "
        f"i32 0, i32 {site})"
    )


def row(e: LaneEmitter, number: int, bits: int) -> str:
    """A pointer to a row of the warp's ``wide``."""
    return e.do(f"getelementptr i8, ptr %warp, i64 {offset(WARP, 'wide') + number * WIDTH * bits // 8}")


def integer_type(type: str) -> str:
    """The type as whose bits a value is moved: signs are kept, floats are bits."""
    return type if type[0] == "s" else f"b{8 * TYPE_BYTES[type]}"


def elements(access: Access, operand: Operand) -> tuple[Operand, ...]:
    """The registers of one lane's access. b128 counts as one."""
    items = operand.items if isinstance(operand, Vector) else (operand,)
    if access.type == "b128" and access.count == 1:
        return (operand,)
    if len(items) != access.count:
        raise Unsupported(f"{len(items)} registers for {access.count} elements")
    return items


def emit_ld(e: LaneEmitter, instruction: Instruction) -> None:
    access = parse(instruction)
    if access.rest:
        raise Unsupported(f".{access.rest[0]}")
    if len(instruction.operands) < 2:
        raise Unsupported("a destination and an address are wanted")
    destination, place = instruction.operands[:2]
    items = elements(access, destination)
    if _load_parameter(e, access, items, place):
        return
    p = pointers(e, access, e.address(place), 0)
    if access.type == "b128" or access.count > 1:
        bits = min(access.bits, 64)
        count = access.bytes * 8 // bits
        e.run(f"call void @rt.load_{bits}x{count}(ptr %warp, {Lanes64} {p})")
        values = [e.do(f"load {vector(f'i{bits}')}, ptr {row(e, j, bits)}, align 8") for j in range(count)]
    else:
        values = [e.do(f"call {vector(f'i{access.bits}')} @rt.load_{access.bits}({Lanes64} {p})")]
    _write_all(e, access, items, values)


def _write_all(e: LaneEmitter, access: Access, items: tuple[Operand, ...], values: list[str]) -> None:
    if access.type == "b128":
        for i, item in enumerate(items):
            e.write128(item, values[2 * i], values[2 * i + 1])
        return
    for item, value in zip(items, values, strict=True):
        if not isinstance(item, Sink):
            e.write(item, value, integer_type(access.type))


def _load_parameter(e: LaneEmitter, access: Access, items: tuple[Operand, ...], place: Operand) -> bool:
    """A kernel parameter at a fixed offset is the same in all lanes, and needs no checks at run time."""
    if not isinstance(place, Address) or not isinstance(place.base, Symbol):
        return False
    found = e.symbols.places.get(place.base.name)
    if found is None or found.variable.space != "param":
        return False
    start = place.base.offset + place.offset
    if start < 0 or start + access.bytes > (found.variable.size or 0):
        raise Unsupported(f"bytes {start} to {start + access.bytes} of {place.base.name} are not in the parameter")
    at = e.do(f"getelementptr i8, ptr %launch, i64 {offset(LAUNCH, 'parameters')}")
    base = e.do(f"load ptr, ptr {at}, align 8")
    bits = min(access.bits, 64)
    values = []
    for j in range(access.bytes * 8 // bits):
        byte = found.address - PARAMETERS + start + j * bits // 8
        pointer = e.do(f"getelementptr i8, ptr {base}, i64 {byte}")
        values.append(broadcast(e, e.do(f"load i{bits}, ptr {pointer}, align 1"), f"i{bits}"))
    _write_all(e, access, items, values)
    return True


def emit_st(e: LaneEmitter, instruction: Instruction) -> None:
    access = parse(instruction)
    if access.rest:
        raise Unsupported(f".{access.rest[0]}")
    if len(instruction.operands) < 2:
        raise Unsupported("an address and a value are wanted")
    place, source = instruction.operands[:2]
    items = elements(access, source)
    values = read_all(e, access, items)
    p = pointers(e, access, e.address(place), WRITE)
    if len(values) == 1:
        e.run(f"call void @rt.store_{access.bits}({Lanes64} {p}, {vector(f'i{access.bits}')} {values[0]})")
        return
    bits = min(access.bits, 64)
    for j, value in enumerate(values):
        e.run(f"store {vector(f'i{bits}')} {value}, ptr {row(e, j, bits)}, align 8")
    e.run(f"call void @rt.store_{bits}x{len(values)}(ptr %warp, {Lanes64} {p})")


def read_all(e: LaneEmitter, access: Access, items: tuple[Operand, ...]) -> list[str]:
    """The elements of one lane's access as integers of at most 64 bits."""
    values: list[str] = []
    for item in items:
        if isinstance(item, Sink):
            raise Unsupported("'_' as a source")
        if access.type == "b128":
            values.extend(e.read128(item))
        else:
            values.append(e.read(item, f"b{access.bits}"))
    return values


def emit_mov(e: LaneEmitter, instruction: Instruction) -> None:
    type = instruction.parts[-1]
    destination, source = _two(instruction)
    if type == "b128":
        e.write128(destination, *e.read128(source))
        return
    if isinstance(source, Address):
        raise Unsupported("an address in brackets")
    e.write(destination, e.read(source, type), type)


def emit_cvta(e: LaneEmitter, instruction: Instruction) -> None:
    parts = instruction.parts
    space = parts[-2].partition("::")[0]
    if parts[-1] != "u64" or space not in ("global", "const", "param", "shared", "local"):
        raise Unsupported("only .u64 addresses of a state space")
    destination, source = _two(instruction)
    value = e.read(source, "u64")
    window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(space, 0)
    if window:
        op = "sub" if parts[1] == "to" else "add"
        value = e.do(f"{op} {Lanes64} {value}, {splat('i64', window)}")
    e.write(destination, value, "u64")


def _inside(e: LaneEmitter, value: str, start: int, size: int) -> str:
    moved = e.do(f"sub {Lanes64} {value}, {splat('i64', start)}")
    return e.do(f"icmp ult {Lanes64} {moved}, {splat('i64', size)}")


def own_rank(e: LaneEmitter) -> str:
    """The CTA's rank in its cluster in all lanes, i64."""
    return broadcast(e, e.do(f"lshr i64 %rank_base, {RANK_SHIFT}"), "i64")


def emit_isspacep(e: LaneEmitter, instruction: Instruction) -> None:
    space = ".".join(instruction.parts[1:])
    destination, source = _two(instruction)
    value = e.read(source, "u64")
    bool_type = vector("i1")
    shared = _inside(e, value, SHARED_WINDOW, 1 << 32)
    if space in ("shared", "shared::cta"):
        rank = e.do(f"and {Lanes64} {value}, {splat('i64', 0xFFFFFFFF)}")
        rank = e.do(f"lshr {Lanes64} {rank}, {splat('i64', RANK_SHIFT)}")
        mine = e.do(f"icmp eq {Lanes64} {rank}, {own_rank(e)}")
        result = e.do(f"and {bool_type} {shared}, {mine}")
    elif space == "shared::cluster":
        result = shared
    elif space == "local":
        result = _inside(e, value, LOCAL_WINDOW, 1 << 32)
    elif space in ("param", "param::entry"):
        result = _inside(e, value, PARAMETERS, VARIABLES - PARAMETERS)
    elif space == "global":
        result = _inside(e, value, GLOBAL_BASE, LOCAL_WINDOW - GLOBAL_BASE)
        for inside in _constants(e, value):
            outside = e.do(f"xor {bool_type} {inside}, {splat('i1', 1)}")
            result = e.do(f"and {bool_type} {result}, {outside}")
    elif space == "const":
        result = splat("i1", 0)
        for inside in _constants(e, value):
            result = e.do(f"or {bool_type} {result}, {inside}")
    else:
        raise Unsupported(f"state space .{space}")
    e.write(destination, result, "pred")


def _constants(e: LaneEmitter, value: str) -> list[str]:
    """Whether the address is in one of the constant variables, a predicate each."""
    places = [place for place in e.symbols.places.values() if place.variable.space == "const"]
    return [
        _inside(e, value, place.address, -(-(place.variable.size or 1) >> GRANULE_SHIFT) << GRANULE_SHIFT)
        for place in places
    ]


def emit_mapa(e: LaneEmitter, instruction: Instruction) -> None:
    type = instruction.parts[-1]
    if type not in ("u32", "u64") or len(instruction.operands) != 3:
        raise Unsupported("mapa has .u32 or .u64 and three operands")
    destination, source, rank = instruction.operands
    generic = len(instruction.parts) == 2
    address = e.address(source) if isinstance(source, Address) else e.read(source, type)
    if type == "u32" and not isinstance(source, Address):
        address = e.do(f"zext {vector('i32')} {address} to {Lanes64}")
    place = e.do(f"and {Lanes64} {address}, {splat('i64', (1 << RANK_SHIFT) - 1)}")
    wide = e.do(f"zext {vector('i32')} {e.read(rank, 'u32')} to {Lanes64}")
    high = e.do(f"shl {Lanes64} {wide}, {splat('i64', RANK_SHIFT)}")
    result = e.do(f"or {Lanes64} {place}, {high}")
    if generic:
        result = e.do(f"add {Lanes64} {result}, {splat('i64', SHARED_WINDOW)}")
    if type == "u32":
        result = e.do(f"trunc {Lanes64} {result} to {vector('i32')}")
    e.write(destination, result, type)


def emit_getctarank(e: LaneEmitter, instruction: Instruction) -> None:
    type = instruction.parts[-1]
    destination, source = _two(instruction)
    value = e.read(source, type)
    if type == "u32":
        value = e.do(f"zext {vector('i32')} {value} to {Lanes64}")
    low = e.do(f"and {Lanes64} {value}, {splat('i64', 0xFFFFFFFF)}")
    rank = e.do(f"lshr {Lanes64} {low}, {splat('i64', RANK_SHIFT)}")
    e.write(destination, e.do(f"trunc {Lanes64} {rank} to {vector('i32')}"), "u32")


def emit_createpolicy(e: LaneEmitter, instruction: Instruction) -> None:
    """A cache policy says nothing where there are no caches."""
    e.write(instruction.operands[0], splat("i64", 0), "b64")


def _two(instruction: Instruction) -> tuple[Operand, Operand]:
    if len(instruction.operands) != 2:
        raise Unsupported("two operands are wanted")
    return instruction.operands[0], instruction.operands[1]
