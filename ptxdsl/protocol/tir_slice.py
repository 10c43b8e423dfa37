"""Which part of a kernel's TIR its protocol is.

Operations that the model has (``tir_effects.py``) are kept, with the control flow around them and all that decides
whether and how often it comes to them: what their operands are made of, conditions, trip counts, jumps. One walk finds
who makes what; from the operations kept, needs are followed backwards until nothing new turns up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptxdsl.intrinsics import ROWS
from ptxdsl.protocol.expressions import ARRAY_SHIFT
from ptxdsl.protocol.model import Array
from ptxdsl.protocol.tir_effects import is_protocol, writes_global
from ptxdsl.protocol.tir_integers import Integers, read_answer
from ptxdsl.protocol.tir_operations import needs
from ptxdsl.record import replace
from ptxdsl.tir import Block, Kernel, Op, Value

CONTROL = frozenset({"if", "for", "loop", "scope"})
_DYNAMIC_ALIGN = 1024  # more than a matrix of any swizzle asks for


class Slice:
    """kept: the operations of control flow that the model has. integers: what values are there."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.made: dict[Value, Op] = {}
        self.place: dict[Value, tuple[Op, int]] = {}  # of what control flow hands over: whose it is, which one
        self.parent: dict[Op, Op | None] = {}
        self.block_of: dict[Op, int] = {}  # which block of the parent an operation is in
        self.jumps: dict[Op, list[Op]] = {}  # to a loop, for or scope: the operations that go there
        self.kept: set[Op] = set()
        self.variable_count = 0
        self.arrays: list[Array] = []
        self.end = 0  # of the static arrays, as they lie in shared memory
        self.bases: dict[Op, int] = {}
        written: set[Value] = set()
        self.seeds: list[Op] = []
        self.last = kernel.body.ops[-1] if kernel.body.ops else None
        self.survey(kernel.body, None, 0, written)
        self.place_dynamic()
        params = dict(zip(kernel.params, self.param_names(), strict=True))
        self.integers = Integers(self.made, params, self.bases, kernel.body)
        roots = self.roots(written)
        self.integers.written = frozenset(root for root in roots if isinstance(root, str))
        self.find_tensors()
        self.find_answers()
        self.demand()

    def param_names(self) -> Iterator[str]:
        for number, param in enumerate(self.kernel.params):
            yield f"{param.name or 'parameter'}#{number}"

    def roots(self, pointers: Iterable[Value]) -> set[Op | str]:
        """The allocations and parameters that pointers may be derived from, whatever chooses among them."""
        found = set[Op | str]()
        chosen = [pointer for pointer in pointers if not self._derived(pointer, found)]
        seen = set[Value]()
        while chosen:
            value = chosen.pop()
            if value in seen or (value.ty.is_pointer and self._derived(value, found)):
                continue
            seen.add(value)
            op = self.made.get(value)
            if value in self.place:
                owner, number = self.place[value]
                chosen.extend(self.sources(owner, value, number))
            elif op is not None and op.name not in ROWS and op.name != "load":
                chosen.extend(op.operands)
        return found

    def _derived(self, pointer: Value, found: set[Op | str]) -> bool:
        """Adds what a pointer is derived from, where that is one allocation or parameter."""
        root = self.integers.root(pointer)
        if root is not None:
            found.add(root)
        return root is not None

    # -------------------------------------------------------------------------------------------------- the survey

    def survey(self, block: Block, parent: Op | None, index: int, written: set[Value]) -> None:
        made, parents = self.made, self.parent
        for op in block.ops:
            name = op.name
            for result in op.results:
                made[result] = op
            if name in CONTROL:
                parents[op] = parent
                self.block_of[op] = index
                for i, result in enumerate(op.results):
                    self.place[result] = op, i
                for i, inner in enumerate(op.blocks):
                    for j, param in enumerate(inner.params):
                        self.place[param] = op, j
                    self.survey(inner, op, i, written)
            elif name in ("repeat", "leave", "return", "yield"):
                parents[op] = parent
                if name == "return":
                    if op is not self.last:
                        self.seeds.append(op)
                elif name != "yield":
                    self.jumps.setdefault(op.attrs["target"], []).append(op)
            elif name in ("shared.alloc", "shared.dynamic"):
                self.allocate(op)
            elif is_protocol(op):
                parents[op] = parent
                self.seeds.append(op)
                if writes_global(op):
                    written.add(op.operands[0])
            elif name == "store" or writes_global(op):
                parents[op] = parent
                written.add(op.operands[0])

    def allocate(self, op: Op) -> None:
        dynamic = op.name == "shared.dynamic"
        if dynamic:
            for other, base in self.bases.items():
                if other.name == "shared.dynamic":  # the same memory, wherever it is spoken of
                    self.bases[op] = base
                    return
        align = int(op.attrs.get("align", 16))
        start = -(-self.end // align) * align
        name = "dynamic shared memory" if dynamic else str(op.attrs["name"])
        size = None if dynamic else int(op.attrs["bytes"])
        base = ((len(self.arrays) + 1) << ARRAY_SHIFT) + (0 if dynamic else start)
        self.end = start + (size or 0)
        self.arrays.append(Array(name, base, size, int(op.attrs.get("element", 0)), op.span))
        self.bases[op] = base

    def place_dynamic(self) -> None:
        """Dynamic shared memory lies behind all static arrays."""
        start = -(-self.end // _DYNAMIC_ALIGN) * _DYNAMIC_ALIGN
        for i, array in enumerate(self.arrays):
            if array.bytes is None:
                self.arrays[i] = replace(array, base=array.base + start)
                for op, base in self.bases.items():
                    if base == array.base:
                        self.bases[op] = base + start

    def find_tensors(self) -> None:
        """Variables of 4 bytes that nobody writes but ``tcgen05.alloc``, of as many columns each time."""
        written: list[Value] = []
        others: set[Op | str] = set()
        columns: dict[Op, int] = {}
        for op in self.seeds:
            if op.name == "tcgen05_alloc_row":
                slot = self.integers.root(op.operands[0])
                if isinstance(slot, Op) and slot.attrs.get("bytes") == 4:
                    self.integers.tensors.setdefault(slot, len(self.integers.tensors))
                    if columns.setdefault(slot, op.attrs["columns"]) != op.attrs["columns"]:
                        others.add(slot)
            elif op.name == "store" or writes_global(op):
                written.append(op.operands[0])
        if self.integers.tensors:
            others |= self.roots(written)
        for other in others:
            if isinstance(other, Op):
                self.integers.tensors.pop(other, None)
        for slot, number in self.integers.tensors.items():
            from ptxdsl.protocol.tensor_places import allocation  # for tensor memory only

            self.arrays.append(allocation(number, columns[slot], slot.span))

    def find_answers(self) -> None:
        """Loads of answers of cluster launch control, from arrays that nobody else writes."""
        queries = [op for op in self.made.values() if op.name == "query_cancel_row"]
        if not queries:
            return
        others = [op for op in self.seeds if op.name != "load" and not op.name.startswith("try_cancel")]
        roots = {self.integers.root(v) for op in others for v in op.operands if v.ty.is_pointer}
        for loaded in dict.fromkeys(read_answer(query, self.made) for query in queries):
            root = None if loaded is None else self.integers.root(loaded.operands[0])
            if loaded is not None and isinstance(root, Op) and root not in roots and None not in roots:
                self.integers.answers[loaded] = self.fresh()

    # --------------------------------------------------------------------------------------------------- the needs

    def demand(self) -> None:
        values: list[Value] = []
        for op in self.seeds:
            self.keep(op, values)
            values.extend(needs(op))
        self.follow(values)
        self.follow(self.drawn_and_stored())

    def drawn_and_stored(self) -> list[Value]:
        """What atomic operations give and is stored where it is looked at again."""
        integers = self.integers
        integers.looked_at = {integers.root(op.operands[0]) for op in self.seeds if integers.is_looked_at(op)}
        found = []
        for op in self.seeds if integers.looked_at else ():
            if op.name == "store" and integers.root(op.operands[0]) in integers.looked_at:
                maker = self.made.get(op.operands[1])
                if maker is not None and integers.draws(maker):
                    found.append(op.operands[1])
        return found

    def follow(self, values: list[Value]) -> None:
        """Finds what values are made of, and gives variables to those that control flow hands over."""
        seen, variables = self.integers.demanded, self.integers.variables
        while values:
            value = values.pop()
            if value in seen:
                continue
            seen.add(value)
            place = self.place.get(value)
            if place is None:
                maker = self.made.get(value)
                if maker is not None and self.integers.draws(maker):
                    variables[value] = self.integers.drawn[maker] = self.fresh()
                    self.keep(maker, values)
                elif maker is not None:
                    values.extend(self.integers.inputs(value, maker))
                continue
            owner, number = place
            if value not in variables:
                self.number(owner, value, number)
            self.keep_all(owner, values)
            values.extend(self.sources(owner, value, number))

    def number(self, owner: Op, value: Value, number: int) -> None:
        """Gives a value of control flow its variable; what a ``for`` carries and its result share one."""
        variables = self.integers.variables
        fresh = self.fresh()
        variables[value] = fresh
        if owner.name == "for":
            params = owner.blocks[0].params
            if value in owner.results:
                variables[params[number + 1]] = fresh
            elif number > 0:
                variables[owner.results[number - 1]] = fresh

    def fresh(self) -> int:
        self.variable_count += 1
        return self.variable_count - 1

    def sources(self, owner: Op, value: Value, number: int) -> Iterator[Value]:
        """The values that become this one."""
        jumps = self.jumps.get(owner, ())
        is_result = owner in self.parent and value in owner.results
        if owner.name == "if":
            for block in owner.blocks:
                end = block.terminator
                if end is not None and end.name == "yield":
                    yield end.operands[number]
            return
        if owner.name == "for":
            yield from owner.operands[:2]
            if number == 0 and not is_result:
                return
            carried = number if is_result else number - 1
            yield owner.operands[2 + carried]
            yield from (jump.operands[carried] for jump in jumps)
            return
        end = owner.blocks[0].terminator
        if is_result:
            yield from (jump.operands[number] for jump in jumps if jump.name == "leave")
            if owner.name == "scope" and end is not None and end.name == "yield":
                yield end.operands[number]
        else:
            yield owner.operands[number]
            yield from (jump.operands[number] for jump in jumps if jump.name == "repeat")

    def keep(self, op: Op, values: list[Value]) -> None:
        """Keeps what is around an operation, and what it takes to come there."""
        parent = self.parent.get(op)
        if parent is not None:
            self.keep_all(parent, values)

    def keep_all(self, op: Op, values: list[Value]) -> None:
        """Keeps an operation of control flow with all that leaves it early."""
        pending: list[Op | None] = [op]
        while pending:
            next_op = pending.pop()
            if next_op is None or next_op in self.kept:
                continue
            self.kept.add(next_op)
            if next_op.name == "if":
                values.append(next_op.operands[0])
            elif next_op.name == "for":
                values.extend(next_op.operands[:2])
            pending.extend(self.parent[jump] for jump in self.jumps.get(next_op, ()))
            pending.append(self.parent[next_op])
