"""Integers of TIR as expressions of the model: what a value is made of, back to what every thread knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from ptxdsl.intrinsics import ROWS
from ptxdsl.protocol import expressions
from ptxdsl.protocol.expressions import Expr, apply, const
from ptxdsl.protocol.model import Assign
from ptxdsl.tir import Block, Const, Op, Ty, Value, walk

# Special registers that are the same for the whole grid, and for a CTA. The block's and the cluster's shape are known.
_UNIFORM = frozenset({"nctaid_x", "nctaid_y", "nctaid_z", "nclusterid_x", "nclusterid_y", "nclusterid_z", "nsmid"})
_CTA = frozenset(
    {"ctaid_x", "ctaid_y", "ctaid_z", "clusterid_x", "clusterid_y", "clusterid_z"}
    | {"cluster_ctaid_x", "cluster_ctaid_y", "cluster_ctaid_z", "cluster_ctarank"}
)
_AXES = {"x": 0, "y": 1, "z": 2}
_ELECT = frozenset({"elect", "elect_one_sync", "elect_mask"})
_TESTS = frozenset({"mbarrier_try_wait_parity", "mbarrier_test_wait_parity"})
_CASTS = frozenset({"ext.s", "ext.u", "trunc"})
_POINTERS = frozenset({"ptr.add", "ptr.cast", "ptr.toint", "int.toptr", "bitcast"})
_LOOKED_INTO = _TESTS | {
    "shfl_idx", "vote_any_sync", "vote_all_sync", "mapa", "elect_mask", "tcgen05_descriptor", "tcgen05_descriptor_at"
}  # fmt: skip
_POINTER_BITS = 64

# Deep chains of arithmetic are cut off here: what is beyond is unknown.
_DEPTH = 200


class Integers:
    """variables: of what control flow hands over and the model keeps in variables. bases: of allocations, addresses."""

    def __init__(
        self,
        made: Mapping[Value, Op],
        params: Mapping[Value, str],
        bases: Mapping[Op, int],
        body: Block,
    ) -> None:
        self.made = made
        self.params = params
        self.bases = bases
        self.body = body
        self.written: frozenset[str] = frozenset()  # names of the pointer parameters through which the kernel writes
        self.tensors: dict[Op, int] = {}  # variables in which the address of an allocation of tensor memory is noted
        self.answers: dict[Op, int] = {}  # loads of answers of cluster launch control: the variables that have them
        self.drawn: dict[Op, int] = {}  # atomic operations on global memory whose result matters: its variable
        self.demanded: set[Value] = set()  # all that matters
        self.looked_at: set[Op | str | None] = set()  # shared memory of which a word matters
        self.variables: dict[Value, int] = {}
        self._known: dict[Value, Expr] = {}
        self._unknowns = 0

    def of(self, value: Value, depth: int = 0) -> Expr:
        """The expression of a scalar integer or pointer; unknown where it is made of anything else."""
        found = self._known.get(value)
        if found is None:
            found = self._known[value] = self._of(value, depth)
        return found

    def unknown(self, bits: int) -> Expr:
        self._unknowns += 1
        return expressions.unknown(self._unknowns, bits)

    def root(self, pointer: Value) -> Op | str | None:
        """The allocation or the parameter that a pointer is derived from; None where that is not to be seen."""
        while (op := self.made.get(pointer)) is not None:
            if op in self.bases:
                return op
            if op.name not in ("ptr.add", "ptr.cast", "bitcast", "mapa"):
                return None
            pointer = op.operands[0]
        return self.params.get(pointer)

    def is_looked_at(self, op: Op) -> bool:
        """Whether it is a load of an integer from shared memory that matters."""
        if op.name != "load" or op.attrs.get("volatile") or not _is_integer(op.result.ty):
            return False
        root = self.root(op.operands[0])
        return op.result in self.demanded and isinstance(root, Op) and root not in self.tensors

    def draws(self, op: Op) -> bool:
        """Whether it is an atomic operation on a parameter's memory that gives an integer."""
        if not op.name.startswith("atom_") or not _is_integer(op.result.ty):
            return False
        return isinstance(self.root(op.operands[0]), str)

    def draw(self, op: Op) -> Assign:
        """Its result gets to its variable."""
        by = op.operands[1]
        rising = op.name == "atom_add" and isinstance(by, Const) and by.value == 1
        return Assign((self.drawn[op],), (expressions.drawn(rising, width(op.result.ty)),))

    def stored(self, op: Op) -> Expr | None:
        """What a store writes to where it is looked at; unknown where it is no constant and does not matter else."""
        value = op.operands[1]
        if not _is_integer(value.ty) or self.root(op.operands[0]) not in self.looked_at:
            return None
        return self.of(value) if isinstance(value, Const) or value in self.demanded else self.unknown(width(value.ty))

    def inputs(self, value: Value, op: Op) -> Sequence[Value]:
        """The operands of the operation that make what ``of`` says of this result of it."""
        name = op.name
        if value.ty.lanes != 1 or not (value.ty.is_int or value.ty.is_pointer) or op in self.bases:
            return ()
        if name == "pipe.step":
            number = op.results.index(value)
            return op.operands[2:] if number == 2 else op.operands[: number + 1]
        if name in expressions.ARITHMETIC or name in _POINTERS or name in _LOOKED_INTO:
            return op.operands
        return op.operands if name == "load" and isinstance(self.root(op.operands[0]), str) else ()

    def _of(self, value: Value, depth: int) -> Expr:
        bits = width(value.ty)
        if isinstance(value, Const):
            return const(int(value.value), bits) if isinstance(value.value, int) else self.unknown(bits)
        if value in self.variables:
            return expressions.var(self.variables[value], bits)
        name = self.params.get(value)
        if name is not None:
            return expressions.uniform(name, bits)
        op = self.made.get(value)
        if op is None or value.ty.lanes != 1 or not (value.ty.is_int or value.ty.is_pointer) or depth > _DEPTH:
            return self.unknown(bits)
        return self._operation(op, value, bits, depth + 1)

    def _operation(self, op: Op, value: Value, bits: int, depth: int) -> Expr:
        name = op.name
        if name in expressions.ARITHMETIC and name != "mapa":
            args = [self.of(v, depth) for v in op.operands]
            if name in _CASTS and bits == args[0].bits:
                return args[0]
            return apply(name, *args, bits=bits)
        if name == "ptr.add":
            return self._advanced(op, depth)
        if name in _POINTERS:
            inner = self.of(op.operands[0], depth)
            return inner if name != "ptr.toint" or bits >= 32 else apply("trunc", inner, bits=bits)
        if name == "pipe.step":
            return self._step(op, op.results.index(value), depth)
        if op in self.bases:
            return const(self.bases[op], _POINTER_BITS)
        if name == "load":
            return self._load(op, bits, depth)
        if name in ROWS:
            return self._instruction(op, bits, depth)
        return self.unknown(bits)

    def _advanced(self, op: Op, depth: int) -> Expr:
        base, index = self.of(op.operands[0], depth), self.of(op.operands[1], depth)
        wide = apply("ext.u" if op.attrs.get("unsigned") else "ext.s", index, bits=_POINTER_BITS)
        scale, offset = int(op.attrs.get("scale", 1)), int(op.attrs.get("offset", 0))
        if wide.op == "const":
            return plus(base, wide.value * scale + offset)
        scaled = wide if scale == 1 else apply("mul", wide, const(scale, _POINTER_BITS), bits=_POINTER_BITS)
        return apply("add", scaled, plus(base, offset), bits=_POINTER_BITS)

    def _step(self, op: Op, result: int, depth: int) -> Expr:
        """index, phase or count after the step (``elaborate/role_pipeline.py``)."""
        stages = int(op.attrs["stages"])
        index, phase, count = (self.of(v, depth) if i <= result else None for i, v in enumerate(op.operands))
        one = const(1)
        if result == 2:
            assert count is not None
            return apply("add", count, one)
        assert index is not None
        if stages == 1 and result == 0:
            return index
        after = apply("add", index, one)
        last = apply("eq", after, const(stages), bits=1)
        if result == 0:
            return apply("select", last, const(0), after)
        assert phase is not None
        return apply("xor", phase, one if stages == 1 else apply("ext.u", last))

    def _load(self, op: Op, bits: int, depth: int) -> Expr:
        root = self.root(op.operands[0])
        if isinstance(root, Op) and root in self.tensors:
            return const(expressions.tensor_address(self.tensors[root]), bits)
        if not isinstance(root, str) or not self.stays(op, root):
            return self.unknown(bits)
        return expressions.load(root, self.of(op.operands[0], depth), bits)

    def stays(self, op: Op, root: str) -> bool:
        """Whether a load from a parameter's memory gives the same for the same address everywhere: nobody writes there,
        neither this kernel nor the grid before it that may not have ended."""
        if root in self.written or op.attrs.get("volatile"):
            return False
        return op not in self.unsettled

    @cached_property
    def unsettled(self) -> frozenset[Op]:
        """Loads of a kernel that waits for the grid before it, at which some thread may not have waited."""
        if not any(op.name == "griddepcontrol_wait" for op in walk(self.body)):
            return frozenset()
        found = set[Op]()
        for op in self.body.ops:
            if op.name == "griddepcontrol_wait":
                break
            found.update(inner for inner in (op, *(o for b in op.blocks for o in walk(b))) if inner.name == "load")
        return frozenset(found)

    def _instruction(self, op: Op, bits: int, depth: int) -> Expr:
        name, axis = op.name, _AXES.get(op.name[-1], 0)
        if name.startswith("tid_"):
            return expressions.tid(axis)
        if name.startswith("ntid_"):
            return expressions.uniform(name)
        if name == "laneid":
            return apply("mod.u", expressions.tid(3), const(32))
        if name in _UNIFORM or name.startswith("cluster_nct"):
            return expressions.uniform(name)
        if name in _CTA:
            return expressions.cta(name)
        if name == "query_cancel_row":
            loaded = read_answer(op, self.made)
            return expressions.var(self.answers[loaded], bits) if loaded in self.answers else self.unknown(bits)
        if name in _ELECT:
            lanes = self.of(op.operands[0], depth) if name == "elect_mask" else None
            return expressions.elected(bits, lanes) or self.unknown(bits)
        if name in _TESTS:
            return expressions.test(self.of(op.operands[0], depth), self.of(op.operands[1], depth))
        if name == "shfl_idx":
            return expressions.shuffle(self.of(op.operands[1], depth), self.of(op.operands[2], depth))
        if name in ("vote_any_sync", "vote_all_sync"):
            lanes, value = (self.of(v, depth) for v in op.operands)
            return expressions.vote(name[5:8], value, lanes) or self.unknown(bits)
        if name == "tcgen05_descriptor":
            return plus(self.of(op.operands[0], depth), int(op.attrs["fields"]))
        if name == "tcgen05_descriptor_at":
            return plus(self.of(op.operands[0], depth), int(op.attrs["offset"]))
        if name == "mapa":
            return apply("mapa", *(self.of(v, depth) for v in op.operands), bits=_POINTER_BITS)
        return self.unknown(bits)


def read_answer(query: Op, made: Mapping[Value, Op]) -> Op | None:
    """The load of both halves of the answer that a query looks at; None where they are not of one load."""
    low, high = (made.get(half) for half in query.operands)
    if low is None or high is None or low.name != "vec.extract" or high.name != "vec.extract":
        return None
    (vector, first), (other, second) = low.operands, high.operands
    if vector is not other or [half.value for half in (first, second) if isinstance(half, Const)] != [0, 1]:
        return None
    loaded = made.get(vector)
    return loaded if loaded is not None and loaded.name == "load" else None


def plus(base: Expr, offset: int) -> Expr:
    """base + offset, with the constants of nested sums in one."""
    if not offset:
        return base
    if base.op == "add" and base.args[1].op == "const":
        return apply("add", base.args[0], const(base.args[1].value + offset, base.bits), bits=base.bits)
    return apply("add", base, const(offset, base.bits), bits=base.bits)


def _is_integer(ty: Ty) -> bool:
    return ty.is_int and ty.lanes == 1


def width(ty: Ty) -> int:
    return _POINTER_BITS if ty.is_pointer else ty.bits
