"""Instructions of PTX as operations of the model: which are protocol, which registers they need, what they become.

Source: PTX ISA, "Parallel Synchronization and Communication Instructions", "Data Movement and Conversion Instructions".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from ptxdsl.effects import ACCESSES, Effect, Kind
from ptxdsl.protocol import model
from ptxdsl.protocol.algebra import plain
from ptxdsl.protocol.expressions import ARRAY_SHIFT, Expr, const
from ptxdsl.protocol.matrix_places import copied_places, operand_places
from ptxdsl.protocol.model import ONE_RUN, Array, Branch, Node, Place, Return, Same, Seq, Unmodelled
from ptxdsl.protocol.ptx_graph import Item, Wait
from ptxdsl.protocol.ptx_integers import type_of
from ptxdsl.protocol.ptx_registers import root_of
from ptxdsl.protocol.ptx_traps import is_trap
from ptxdsl.protocol.ptx_values import Values
from ptxdsl.ptx.liveness import register_names
from ptxdsl.ptx.module import Address, Immediate, Instruction, Operand, Register, Vector
from ptxdsl.ptx.opcodes import effect, sources
from ptxdsl.record import replace
from ptxdsl.source import Span

_BARRIER_BYTES = 8
_ADDRESS_BITS = 64

_NOTHING = frozenset((Kind.PURE, Kind.GRID))
_SHARED = frozenset(("shared", "cluster"))
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
# Functions that nobody's synchronisation depends on.
_HARMLESS_CALLS = frozenset(("call.vprintf", "call.malloc", "call.free"))
_MATRIX_ROW = 16
_QUERY_BYTES = 16  # of what clusterlaunchcontrol.try_cancel writes

# The columns and the depth of a warpgroup's product.
_SHAPE = re.compile(r"^wgmma\.mma_async\..*\.m64n(\d+)k(\d+)\.")

_COPY_SHAPE = re.compile(r"^\d+x\d+b$")

# Accesses by the operand that is the address (of all operands) and the bytes (None: as the type says).
_READS = {"ldmatrix": (1, _MATRIX_ROW), "tensormap.cp_fenceproxy": (1, 128)}
_WRITES = {"stmatrix": (0, _MATRIX_ROW), "tcgen05.alloc": (0, 4), "tensormap.replace": (0, 128)}


def is_protocol(item: Item) -> bool:
    """Whether the model may have this; a generic access turns out to be none where its address is known."""
    if isinstance(item, Wait):
        return True
    what = effect(item)
    if is_trap(item):
        return item.guard is None  # who goes on has not trapped
    if item.opcode.startswith("call."):
        return item.opcode not in _HARMLESS_CALLS
    if what.kind in _NOTHING or what.kind is Kind.TRAP:
        return False
    if what.kind in ACCESSES:
        return _is_access(item) and what.space in (None, *_SHARED, "tensor")
    return True


def _is_access(item: Instruction) -> bool:
    """Whether it touches memory that threads share (clocks and prefetches do not)."""
    first = item.opcode.partition(".")[0]
    return first in ("ld", "st", "atom", "red", "ldmatrix", "stmatrix", "wmma", "tcgen05", "st.bulk", "tensormap")


def looks_anew(item: Item) -> bool:
    """Whether it reads what other threads may write meanwhile."""
    if isinstance(item, Wait):
        return False
    first, *rest = item.opcode.split(".")
    return first == "atom" or (first == "ld" and not {"volatile", "relaxed", "acquire", "mmio"}.isdisjoint(rest))


def needs(item: Item) -> set[str]:
    """The registers that matter to the model."""
    instruction = item.test if isinstance(item, Wait) else item
    operands: Iterable[Operand] = instruction.operands
    if not isinstance(item, Wait) and effect(instruction).kind in ACCESSES:
        operands = [operand for operand in operands if isinstance(operand, Address)]
    names = {name for operand in operands if not isinstance(operand, Vector) for name in register_names(operand)}
    if instruction.guard is not None:
        names.add(instruction.guard[0].name)
    return names


def _relaxed(item: Instruction) -> Instruction | None:
    """An arrival at a barrier, or a wait for it, that tells nothing (PTX ISA, ``mbarrier``: ``.sem``)."""
    is_one = item.opcode.startswith(("mbarrier.arrive.", "mbarrier.test_wait.", "mbarrier.try_wait."))
    return item if is_one and "relaxed" in item.parts else None


def _writes_global(item: Item) -> bool:
    if isinstance(item, Wait):
        return False
    if item.opcode.startswith("tensormap.cp_fenceproxy"):  # a read of shared memory besides
        return True
    what = effect(item)
    writes = what.kind in (Kind.WRITE, Kind.ATOMIC) or (what.kind is Kind.ASYNC_COPY and what.space == "global")
    return writes and what.space in (None, "global") and not item.opcode.startswith(("ld.", "call."))


def written(item: Item) -> list[str]:
    """The registers of the address of global memory that an item may write."""
    if isinstance(item, Wait) or not _writes_global(item):
        return []
    return [name for operand in item.operands if isinstance(operand, Address) for name in register_names(operand)]


def written_root(item: Item, values: Values) -> str | bool | None:
    """The parameter through which an item writes global memory; None: it cannot be seen; False: it does not write."""
    if isinstance(item, Wait) or not _writes_global(item):
        return False
    address = next((operand for operand in item.operands if isinstance(operand, Address)), None)
    if address is None:
        return None
    found = values.address(address, _ADDRESS_BITS)
    root = root_of(found, values.roots)
    return False if root is None and _is_surely_shared(found, values, {}) else root


def _is_surely_shared(address: Expr, values: Values, known: dict[Expr, bool]) -> bool:
    """Whether an address is a shared variable's, whatever chooses among several."""
    found = known.get(address)
    if found is None:
        known[address] = False
        if address.op == "const":
            found = is_shared(address, values)
        elif address.op == "select":
            found = all(_is_surely_shared(arm, values, known) for arm in address.args[1:])
        elif address.op == "var":
            starts = values.starts.get(address, ())
            found = bool(starts) and all(_is_surely_shared(start, values, known) for start in starts)
        else:
            found = any(_is_surely_shared(arg, values, known) for arg in address.args)
        known[address] = found
    return found


def is_shared(address: Expr, values: Values) -> bool:
    """Whether an address is made of a shared variable's."""
    numbers = {base >> ARRAY_SHIFT for base in values.symbols.values()}
    work, seen = [address], set()
    while work:
        at = work.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        if at.op == "const" and at.value >> ARRAY_SHIFT in numbers:
            return True
        if at.op == "var":
            work.extend(values.starts.get(at, ()))
        work.extend(at.args)
    return False


class Operations:
    """arrays: of the model. span_of: of a line of the PTX text. used: loads that somebody needs (``ptx_uses.py``)."""

    def __init__(
        self, values: Values, arrays: list[Array], span_of: Callable[[int], Span], used: set[tuple[int, int]]
    ) -> None:
        self.values = values
        self.arrays = arrays
        self.span_of = span_of
        self.used = used
        self.is_used = True  # of the item that is looked at

    def nodes(self, number: int, index: int, item: Item) -> list[Node]:
        """What an item of a block is in the model."""
        if not is_protocol(item):
            return []
        self.values.look(number, index)
        self.is_used = (number, index) in self.used
        relaxed = _relaxed(item.test if isinstance(item, Wait) else item)
        if relaxed is not None:
            return [Unmodelled(self.span_of(relaxed.line), f"`{relaxed.opcode}` orders nothing", ONE_RUN)]
        if isinstance(item, Wait):
            return [self._wait(item)]
        made = list(self._made(item))
        if item.guard is None or not made:
            return made
        condition = self.values.guard(item, self.values.at[number, index])
        return [Branch(condition, Seq(tuple(made)), Seq(()), self.span_of(item.line))]

    def _wait(self, wait: Wait) -> Node:
        test = wait.test
        what = replace(effect(test), kind=Kind.BAR_WAIT, convergent=True)
        return self._barrier_op(test, what)

    def _made(self, item: Instruction) -> Iterator[Node]:
        opcode, span = item.opcode, self.span_of(item.line)
        what = effect(item)
        if is_trap(item):
            yield Return(span)
        elif opcode.startswith("call."):
            yield Unmodelled(span, f"what `{opcode.removeprefix('call.')}` does is not known", ONE_RUN)
        elif opcode.startswith("fence.proxy.async::generic.acquire"):
            yield Unmodelled(span, f"`{opcode}` orders one way only, which is not modelled", ONE_RUN)
        elif opcode.startswith("mbarrier.arrive_drop"):
            yield Unmodelled(span, "`mbarrier.arrive_drop` changes how many arrivals a phase takes", ONE_RUN)
        elif what.kind in (Kind.NAMED_SYNC, Kind.NAMED_ARRIVE):
            # The predicate of a reduction comes last; a second operand before it is the number of threads.
            operands = [operand for operand in sources(item) if not _is_predicate(operand, self.values)]
            count = self.values.read(operands[1], 32) if len(operands) > 1 else None
            yield model.Op(what, opcode, span, count=count, id=self.values.read(operands[0], 32))
        elif what.kind in (Kind.WAIT_GROUP, Kind.REGISTERS) or (what.kind is Kind.COMMIT and what.barrier is None):
            number = next((operand.value for operand in sources(item) if isinstance(operand, Immediate)), None)
            yield model.Op(what, opcode, span, count=None if number is None else const(number))
        elif what.kind in ACCESSES:
            yield from self._access(item, what, span)
        elif what.kind is Kind.ASYNC_COPY:
            yield self._copy(item, what, span)
        elif what.kind is Kind.ASYNC_MMA:
            yield self._matrix(item, what, span)
        elif what.barrier is not None:
            yield self._barrier_op(item, what)
        elif what.kind is Kind.WARP_SYNC:
            yield model.Op(what, opcode, span, mask=self._members(item))
        else:
            yield model.Op(what, opcode, span)

    def _place(self, operand: Operand, width: int | Expr | None) -> Place:
        address = self.values.address(operand)
        return Place(plain("ext.u", address, bits=_ADDRESS_BITS), width)

    def _barrier_op(self, item: Instruction, what: Effect) -> Node:
        """An operation on an mbarrier; effects count operands without the destinations."""
        span, operands = self.span_of(item.line), sources(item)
        assert what.barrier is not None

        def operand(position: int | None) -> Expr | None:
            taken = None if position is None or position >= len(operands) else operands[position]
            return self.values.read(taken, 32) if isinstance(taken, Register | Immediate) else None

        parity = None
        if what.kind in (Kind.BAR_WAIT, Kind.BAR_TEST):
            if "parity" not in item.opcode:
                why = "a wait for the phase of an arrival's state, not for a parity"
                return Unmodelled(span, why, "wait for the parity: mbarrier.try_wait.parity")
            parity = operand(1)
        mask = operand(len(operands) - 1) if "multicast::cluster" in item.opcode else None
        return model.Op(
            what,
            item.opcode,
            span,
            barrier=self._place(operands[what.barrier], _BARRIER_BYTES),
            parity=parity,
            count=operand(what.count) if what.kind is not Kind.BAR_EXPECT else None,
            bytes=operand(what.bytes),
            mask=mask,
        )

    def _members(self, item: Instruction) -> Expr | None:
        """The lanes that a collective names: the last operand where it says ``.sync``."""
        last = item.operands[-1] if item.operands else None
        named = "sync" in item.parts and item.parts[0] not in ("mma", "wmma", "movmatrix")
        return self.values.read(last, 32) if named and isinstance(last, Register | Immediate) else None

    # ------------------------------------------------------------------------------------------------------ memory

    def _access(self, item: Instruction, what: Effect, span: Span) -> Iterator[Node]:
        first = item.opcode.partition(".")[0]
        if what.space == "tensor":
            yield model.Op(what, item.opcode, span)
            return
        key = first if first in ("ldmatrix", "stmatrix") else ".".join(item.parts[:2])
        known = _READS.get(key) or _WRITES.get(key)
        position, width = known if known is not None else (0, None)
        if known is None:
            position = next((i for i, operand in enumerate(item.operands) if isinstance(operand, Address)), 0)
            width = None if first == "wmma" else _bytes_of(item)
        size: int | Expr | None = width
        if item.opcode.startswith("st.bulk"):
            size = self.values.read(item.operands[1], 32)
        place = self._place(item.operands[position], size)
        stored = item.operands[position + 1 :]
        if first == "st" and all(map(_is_constant, stored)):
            place = replace(place, written=Same(tuple(stored)))
        if what.kind is Kind.READ and not self.is_used:
            place = replace(place, used=False)
        if what.space is None:
            assert place.address is not None
            if not is_shared(place.address, self.values):
                return  # what is not derived from a shared variable is not of the protocol
            what = replace(what, space="shared")
        reads = what.kind is Kind.READ or (what.kind is Kind.ATOMIC and first != "st")
        writes = what.kind is Kind.WRITE or (what.kind is Kind.ATOMIC and first != "ld")
        once = item.opcode.startswith("tcgen05.alloc")  # by the warp
        yield model.Op(what, item.opcode, span, writes=(place,) * writes, reads=(place,) * reads, elected=once)

    def _copy(self, item: Instruction, what: Effect, span: Span) -> Node:
        """Asynchronous copies: cp.async, bulk and tensor copies, st.async, try_cancel."""
        opcode, operands, parts = item.opcode, item.operands, item.parts
        size: Expr | None = None
        width: int | Expr | None = None
        writes: tuple[Place, ...] = ()
        reads: tuple[Place, ...] = ()
        barrier = None
        if opcode.startswith("cp.async.bulk") or opcode.startswith("cp.reduce.async.bulk"):
            if what.bytes is not None:
                size = self.values.read(operands[what.bytes], 32)
                width = size.value if size.op == "const" else size
            if what.completes_on == "mbarrier":
                writes = (self._place(operands[0], width),)
            if what.space == "global" or parts.count("shared::cta") or "shared" in parts:
                source = next((o for o in operands[1:2] if isinstance(o, Address)), None)
                if source is not None:
                    reads = (self._place(source, width),)
            if what.completes_on == "mbarrier" and "global" in parts:
                reads = ()
        elif opcode.startswith("cp.async"):
            count = operands[2] if len(operands) > 2 else None
            writes = (self._place(operands[0], count.value if isinstance(count, Immediate) else None),)
        elif opcode.startswith("clusterlaunchcontrol"):
            size = const(_QUERY_BYTES)
            writes = (self._place(operands[0], _QUERY_BYTES),)
        elif opcode.startswith(("st.async", "red.async")):
            width = _bytes_of(item)
            size = None if width is None else const(width)
            writes = (self._place(operands[0], width),)
        else:  # tcgen05.cp and .shift: tensor memory
            return model.Op(what, opcode, span, reads=self._copied(item) if "cp" in parts else ())
        if what.barrier is not None:
            barrier = self._place(operands[what.barrier], _BARRIER_BYTES)
        mask = None
        if "multicast::cluster" in parts and what.barrier is not None:
            after = [o for o in operands[what.barrier + 1 :] if isinstance(o, Register | Immediate)]
            mask = self.values.read(after[0], 16) if after else None
        return model.Op(what, opcode, span, barrier=barrier, bytes=size, mask=mask, writes=writes, reads=reads)

    def _copied(self, item: Instruction) -> tuple[Place, ...]:
        """What ``tcgen05.cp`` reads of shared memory."""
        source = next((self.values.read(o, 64) for o in sources(item) if self._is_descriptor(o)), None)
        shape = next((part for part in item.parts if _COPY_SHAPE.match(part)), None)
        return (Place(None, None),) if source is None or shape is None else copied_places(source, f".{shape}")

    def _matrix(self, item: Instruction, what: Effect, span: Span) -> Node:
        """wgmma and tcgen05.mma: what they read of shared memory, their descriptors say."""
        operands = item.operands[:3] if item.parts[0] == "tcgen05" else sources(item)  # behind them, masks of columns
        found = [self.values.read(o, 64) for o in operands if self._is_descriptor(o)]
        shape = _SHAPE.search(item.opcode)
        if shape is None or not found:
            places = tuple(first_of(descriptor) for descriptor in found)
            return model.Op(what, item.opcode, span, reads=places)
        name = "sparse" if "sp" in item.parts else "dense"
        types = ".".join(item.parts[-3:])
        flags = ", ".join(str(operand.value) for operand in item.operands if isinstance(operand, Immediate))
        a = found[0] if len(found) > 1 else None
        places = operand_places(name, a, found[-1], int(shape[1]), int(shape[2]), types, flags)
        return model.Op(what, item.opcode, span, reads=places)

    def _is_descriptor(self, operand: Operand) -> bool:
        return isinstance(operand, Register) and self.values.registers.get(operand.name) in ("b64", "u64", "s64")


def first_of(descriptor: Expr) -> Place:
    """Where a matrix begins that a descriptor names: bits 0 to 13 are the address in units of 16 bytes."""
    units = plain("and", descriptor, const(0x3FFF, 64), bits=64)
    return Place(plain("mul", units, const(16, 64), bits=64), None)


def _is_predicate(operand: Operand, values: Values) -> bool:
    return not isinstance(operand, Register | Immediate) or (
        isinstance(operand, Register) and values.registers.get(operand.name) == "pred"
    )


def _is_constant(operand: Operand) -> bool:
    if isinstance(operand, Vector):
        return all(map(_is_constant, operand.items))
    return isinstance(operand, Immediate)


def _bytes_of(item: Instruction) -> int | None:
    """What each thread touches."""
    bits = type_of(item.opcode)[1]
    count = next((_VECTORS[part] for part in item.parts if part in _VECTORS), 1)
    return bits // 8 * count if bits else None
