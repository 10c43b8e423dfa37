"""``atom`` and ``red`` in lane-wise code. Source: PTX ISA, "atom", "red"."""

from __future__ import annotations

from ptxdsl.ptx.module import Instruction, Sink, Vector
from ptxdsl.sim.layout import SHARED_WINDOW, WARP, offset
from ptxdsl.sim.translate.access import Access, Lanes64, elements, integer_type, parse, pointers
from ptxdsl.sim.translate.emitter import WIDTH, Unsupported, splat, vector
from ptxdsl.sim.translate.lanes import LaneEmitter
from ptxdsl.sim.translate.runtime_pointers import ATOMIC, WRITE

_OPERATIONS = frozenset((
    "add", "and", "or", "xor", "exch", "cas", "inc", "dec", "min", "max",
))  # fmt: skip
# By operation the types that it has.
_TYPES = {
    "add": "u32 s32 u64 f16 bf16 f16x2 bf16x2 f32 f64",
    "min": "u32 s32 u64 s64 f16 bf16 f16x2 bf16x2",
    "max": "u32 s32 u64 s64 f16 bf16 f16x2 bf16x2",
    "inc": "u32",
    "dec": "u32",
    "and": "b32 b64",
    "or": "b32 b64",
    "xor": "b32 b64",
    "exch": "b32 b64 b128",
    "cas": "b16 b32 b64 b128",
}


def emit_atom(e: LaneEmitter, instruction: Instruction) -> None:
    access = parse(instruction)
    if len(access.rest) != 1 or access.rest[0] not in _OPERATIONS:
        raise Unsupported(f".{'.'.join(access.rest) or access.type} is not an operation on memory")
    operation = access.rest[0]
    if access.type not in _TYPES[operation].split():
        raise Unsupported(f".{operation} has no .{access.type}")
    operands = instruction.operands
    reduction = instruction.opcode.startswith("red")
    destination = Sink() if reduction else operands[0]
    sources = operands[0 if reduction else 1 :]
    wanted = 3 if operation == "cas" else 2
    if len(sources) < wanted:
        raise Unsupported("operands are missing")
    place = sources[0]
    active = e.active()
    if access.type == "b128":
        for byte, source in zip((0, 128), sources[1:wanted], strict=False):
            for half, value in enumerate(e.read128(source)):
                at = e.do(f"getelementptr i8, ptr %warp, i64 {offset(WARP, 'wide') + byte + 64 * half}")
                e.run(f"store {Lanes64} {value}, ptr {at}, align 8")
        p = pointers(e, access, e.address(place), WRITE | ATOMIC)
        e.run(f"call void @rt.{operation}_128(ptr %warp, {Lanes64} {p}, i8 {active})")
        halves = []
        for half in range(2):
            at = e.do(f"getelementptr i8, ptr %warp, i64 {offset(WARP, 'wide') + 64 * half}")
            halves.append(e.do(f"load {Lanes64}, ptr {at}, align 8"))
        e.write128(destination, *halves)
        return
    values = [[e.read(item, f"b{access.bits}") for item in elements(access, source)] for source in sources[1:wanted]]
    results = elements(access, destination) if isinstance(destination, Vector) else (destination,) * access.count
    address = e.address(place)
    p = pointers(e, access, address, WRITE | ATOMIC)
    for i, result in enumerate(results):
        here = p
        if i:
            here = e.do(f"add {Lanes64} {p}, {splat('i64', i * access.bits // 8)}")
        old = _operate(e, access, operation, here, active, address, [value[i] for value in values])
        if not isinstance(result, Sink):
            e.write(result, old, integer_type(access.type))


def _operate(
    e: LaneEmitter, access: Access, operation: str, p: str, active: str, address: str, values: list[str]
) -> str:
    bits, type = access.bits, access.type
    vec = vector(f"i{bits}")
    given = "".join(f", {vec} {value}" for value in values)

    def call(name: str, lanes: str) -> str:
        return e.do(f"call {vec} @rt.{name}(ptr %warp, {Lanes64} {p}, i8 {lanes}{given})")

    if type in ("f16", "bf16", "f16x2", "bf16x2", "f64"):
        return call(f"atom_{operation}_{type}", active)
    if type == "f32":
        if access.space != "generic":
            return call("atom_add_f32_flush" if access.space == "global" else "atom_add_f32", active)
        # Global memory flushes subnormal numbers, shared memory does not.
        high = e.do(f"lshr {Lanes64} {address}, {splat('i64', 32)}")
        inside = e.do(f"icmp eq {Lanes64} {high}, {splat('i64', SHARED_WINDOW >> 32)}")
        shared = e.do(f"bitcast {vector('i1')} {inside} to i{WIDTH}")
        elsewhere = e.do(f"xor i{WIDTH} {shared}, -1")
        first = call("atom_add_f32", e.do(f"and i{WIDTH} {active}, {shared}"))
        second = call("atom_add_f32_flush", e.do(f"and i{WIDTH} {active}, {elsewhere}"))
        return e.do(f"or {vec} {first}, {second}")
    name = operation
    if operation in ("min", "max"):
        name = f"{operation}_{'s' if type[0] == 's' else 'u'}"
    return call(f"atom_{name}_{bits}", active)
