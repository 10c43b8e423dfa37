"""Operations of TIR as operations of the model: which are protocol, what they need, what they become."""

from __future__ import annotations

from collections.abc import Sequence

from ptxdsl.effects import ACCESSES, Effect, Kind
from ptxdsl.intrinsics import ROWS
from ptxdsl.intrinsics.tensors import WARP_PRODUCTS
from ptxdsl.protocol import model
from ptxdsl.protocol.expressions import Expr, answer, apply, const, uniform
from ptxdsl.protocol.model import ONE_RUN, Array, Assign, Branch, Node, Pipeline, Place, Return, Seq, Unmodelled
from ptxdsl.protocol.tir_effects import PIPES, SHARED, names_space
from ptxdsl.protocol.tir_integers import Integers, plus
from ptxdsl.protocol.tir_written import Sources, Stored
from ptxdsl.record import replace
from ptxdsl.tir import Const, Op, Value

_BARRIER_BYTES = 8

# Memory that rows touch: name → places as (operand, width), width an operand (``$2``), bytes, an attribute's name, or
# None: as many bytes as a tensor map says. What is not here and touches shared memory is unmodelled.
_Touch = tuple[tuple[int, int | str | None], ...]
_READS: dict[str, _Touch] = {
    "cp_async_bulk_s2s": ((1, "$2"),),
    "cp_async_bulk_s2g": ((1, "$2"),),
    "cp_async_bulk_s2g_hint": ((1, "$2"),),
    "cp_reduce_async_bulk_s2g": ((1, "$2"),),
    "ld_cluster_b32": ((0, 4),),
    "ld_cluster_b64": ((0, 8),),
    "tensor_scatter": ((1, None),),
    "tensor_scatter_hint": ((1, None),),
    "tensor_store": ((1, None),),
    "tensor_store_hint": ((1, None),),
    "tensor_reduce": ((1, None),),
    "tensor_reduce_hint": ((1, None),),
    "tensormap_cp_fence_proxy_row": ((1, 128),),
    # each lane gives the address of a row of 16 bytes
    "ldmatrix_x1": ((0, 16),),
    "ldmatrix_x2": ((0, 16),),
    "ldmatrix_x4": ((0, 16),),
    "ldmatrix_bytes_x1": ((0, 16),),
    "ldmatrix_bytes_x2": ((0, 16),),
}
_WRITES: dict[str, _Touch] = {
    "cp_async_bulk_g2s": ((0, "$2"),),
    "cp_async_bulk_g2s_hint": ((0, "$2"),),
    "cp_async_bulk_g2s_multicast": ((0, "$2"),),
    "cp_async_bulk_s2s": ((0, "$2"),),
    "cp_async_ca": ((0, "bytes"),),
    "cp_async_ca_fill": ((0, "bytes"),),
    "cp_async_cg": ((0, 16),),
    "cp_async_cg_fill": ((0, 16),),
    "st_async_b32": ((0, 4),),
    "st_async_b64": ((0, 8),),
    "st_cluster_b32": ((0, 4),),
    "st_cluster_b64": ((0, 8),),
    "tensormap_replace_address": ((0, 128),),
    "tensormap_replace_rank": ((0, 128),),
    "tensormap_replace_size": ((0, 128),),
    "tensormap_replace_stride": ((0, 128),),
    "tensormap_replace_choice": ((0, 128),),
    "try_cancel_row": ((0, 16),),
    "try_cancel_multicast_row": ((0, 16),),
    "tensor_gather": ((0, None),),
    "tensor_gather_hint": ((0, None),),
    "tensor_load": ((0, None),),
    "tensor_load_hint": ((0, None),),
    "tensor_load_pair": ((0, None),),
    "tensor_load_pair_hint": ((0, None),),
    "tensor_load_pair_multicast": ((0, None),),
    "tensor_load_pair_multicast_hint": ((0, None),),
    "tensor_load_multicast": ((0, None),),
    "tensor_load_multicast_hint": ((0, None),),
    "stmatrix_x1": ((0, 16),),
    "stmatrix_x2": ((0, 16),),
    "stmatrix_x4": ((0, 16),),
}
# Rows that write what no operand of the thread says.
_MADE_ELSEWHERE = frozenset({"stmatrix_x1", "stmatrix_x2", "stmatrix_x4", "try_cancel_row", "try_cancel_multicast_row"})
# The operands that are descriptors of A and B.
_DESCRIPTORS: dict[str, tuple[int | None, int]] = {
    "wgmma_shared": (0, 1),
    "wgmma_mixed_shared": (0, 1),
    "wgmma_sparse_shared": (0, 1),
    "wgmma_registers": (None, 4),
    "wgmma_mixed_registers": (None, 4),
    "wgmma_sparse_registers": (None, 4),
}
# The same of tcgen05, with the operand that is the instruction's descriptor; and those of copies to tensor memory.
_PRODUCTS: dict[str, tuple[int | None, int, int]] = {
    name: (1 if "_shared" in name else None, 2, 3 + ("_sparse" in name))
    for name in ROWS
    if name.startswith("tcgen05_mma_")
}
_TENSOR_COPIES = {"tcgen05_copy_row": 1}
# The operand that is not 0 in the lane that executes the instruction.
_ELECTS = {
    **{name: said + 2 + 2 * ("_scaled" in name) for name, (_, _, said) in _PRODUCTS.items()},
    "tcgen05_copy_row": 2,
    "tcgen05_shift_row": 1,
    "tcgen05_commit_elected": 1,
    "tcgen05_commit_multicast_elected": 2,
}
# The operand that says whether a product adds to what is there.
_ADDS = {name: _ELECTS[name] - 1 for name in _PRODUCTS}
# The operands that are the mask of a multicast, and the rank of the CTA whose barrier it is.
_MASKS = {
    "cp_async_bulk_g2s_multicast": 4,
    "tcgen05_commit_multicast": 1,
    "tcgen05_commit_multicast_elected": 1,
    "tensor_load_pair_multicast": 3,
    "tensor_load_pair_multicast_hint": 3,
    "tensor_load_multicast": 3,
    "tensor_load_multicast_hint": 3,
}
_RANKS = {"mbarrier_arrive_cluster": 2, "mbarrier_arrive_cluster_cta": 2, "mbarrier_arrive_expect_tx_cluster": 2}
# Bytes that complete on the barrier where no operand says it.
_BYTES = {"st_async_b32": 4, "st_async_b64": 8, "try_cancel_row": 16, "try_cancel_multicast_row": 16}
# Those that go to every CTA of the cluster.
_EVERYWHERE = frozenset({"try_cancel_multicast_row"})
_ALL_CTAS = apply("sub", apply("shl", const(1), uniform("cluster_nctarank")), const(1))

_READ, _WRITE = Effect(Kind.READ, "shared"), Effect(Kind.WRITE, "shared")

_USE_SCOPE = "allocate it by `TensorMemory[…].scope`, or have a word that nobody else writes for its address"
_USE_SHARED = "keep the pointer's address space: `address_space_cast` to .SHARED, or no cast to .GENERIC"


def _lanes(name: str, what: Effect) -> int | None:
    """The operand with the lanes that take part; None where all of a warp do."""
    return 0 if what.kind is Kind.WARP_SYNC and name not in WARP_PRODUCTS else None


def needs(op: Op) -> Sequence[Value]:
    """The operands that matter to the model."""
    name = op.name
    if name in ("load", "store"):
        return op.operands[:1]
    row = ROWS.get(name)
    if row is None:
        return op.operands if name in PIPES or name in ("pipe.new", "asm") else ()
    what = row.effect
    wanted = {what.barrier, what.bytes, _MASKS.get(name), _RANKS.get(name)}
    if what.count is not None and what.kind is not Kind.BAR_EXPECT:
        wanted.add(what.count)
    if what.kind is Kind.BAR_WAIT or what.kind is Kind.BAR_TEST:
        wanted.add(1)
    if names_space(op, what):
        wanted.add(0)
    wanted.add(_lanes(name, what))
    if name in _DESCRIPTORS:
        wanted.update(_DESCRIPTORS[name])
    wanted.update(_PRODUCTS.get(name, (None,))[:2])
    if name.startswith("tcgen05_"):
        wanted.update(range(7) if name in _PRODUCTS else (0,))
    wanted |= {_TENSOR_COPIES.get(name), _ELECTS.get(name), _ADDS.get(name)}
    for operand, width in (*_READS.get(name, ()), *_WRITES.get(name, ())):
        wanted.add(operand)
        if isinstance(width, str) and width.startswith("$"):
            wanted.add(int(width[1:]))
    return [op.operands[i] for i in wanted if i is not None and i < len(op.operands)]


class Operations:
    def __init__(self, integers: Integers, sources: Sources, arrays: list[Array], casts: bool) -> None:
        """casts: whether addresses of shared memory become generic ones somewhere."""
        self.integers = integers
        self.sources = sources
        self.arrays = arrays
        self.casts = casts
        self.pipelines: list[Pipeline] = []

    def nodes(self, op: Op) -> list[Node]:
        name = op.name
        if name in ("load", "store"):
            return self._access(op)
        if name in PIPES:
            return [self._pipe(op)]
        if name == "pipe.new":
            self._new(op)
            return []
        if name == "asm":
            from ptxdsl.protocol.tir_assembly import assembly

            return assembly(op, self.integers)
        if name == "exit_thread":
            return [Return(op.span)]
        what = ROWS[name].effect
        if names_space(op, what):
            return self._access_in_named_space(op, what)
        if name == "tcgen05_alloc_row":
            return self._allocate(op, what)
        made = self._row(op, what)
        if name not in _ELECTS:
            return [made]
        chosen = apply("ne", self.integers.of(op.operands[_ELECTS[name]]), const(0), bits=1)
        if chosen.op == "const":
            return [made] if chosen.value else []
        return [Branch(chosen, Seq((made,)), Seq(()), op.span)]

    def _allocate(self, op: Op, what: Effect) -> list[Node]:
        """The address is written where it is noted, and the memory that it is of taken."""
        slot = self.integers.root(op.operands[0])
        number = self.integers.tensors.get(slot) if isinstance(slot, Op) else None
        if number is None:
            return [Unmodelled(op.span, "what becomes of the address of tensor memory is not seen", _USE_SCOPE)]
        from ptxdsl.protocol import tensor_places

        noted = Place(self.integers.of(op.operands[0]), 4)
        taken = model.Op(
            replace(what, space="tensor"), op.name, op.span, writes=tensor_places.whole(number, op.attrs["columns"])
        )
        return [model.Op(_WRITE, op.name, op.span, writes=(noted,), elected=True), taken]

    def _access(self, op: Op) -> list[Node]:
        pointer = op.operands[0]
        root = self.integers.root(pointer)
        if pointer.ty.name == "ptr.generic" and not isinstance(root, Op):
            if root is None and self.casts:
                return [Unmodelled(op.span, "what memory this generic pointer points to is not seen", _USE_SHARED)]
            return []  # global memory, or as good as: what is not derived from a shared array is not of the protocol
        ty = op.results[0].ty if op.name == "load" else op.operands[1].ty
        if op.name == "store":
            place = Place(self.integers.of(pointer), ty.bytes, Stored(self.sources, op.operands[1:]))
            value = self.integers.stored(op)
            return [model.Op(_WRITE, name=op.name, span=op.span, writes=(place,), value=value)]
        place = Place(self.integers.of(pointer), ty.bytes)
        value = self.integers.of(op.result) if self.integers.is_looked_at(op) else None
        read = model.Op(_READ, name=op.name, span=op.span, reads=(place,), value=value)
        variable = self.integers.answers.get(op)
        if variable is None or place.address is None:
            return [read]
        return [read, Assign((variable,), (answer(place.address),))]

    def _access_in_named_space(self, op: Op, what: Effect) -> list[Node]:
        if not op.attrs.get("space"):
            root = self.integers.root(op.operands[0])
            if root is None and self.casts:
                return [Unmodelled(op.span, "what memory this generic pointer points to is not seen", _USE_SHARED)]
            if not isinstance(root, Op):
                return []
        ty = op.results[0].ty if op.results else op.operands[1].ty
        written = Stored(self.sources, op.operands[1:]) if what.kind is Kind.WRITE else None
        place = (Place(self.integers.of(op.operands[0]), ty.bytes, written),)
        writes = () if what.kind is Kind.READ else place
        return [model.Op(replace(what, space="shared"), op.name, op.span, writes=writes, reads=place)]

    def _pipe(self, op: Op) -> Node:
        attrs, of = op.attrs, self.integers.of
        index = apply("ext.u", of(op.operands[1]), bits=64)
        scale = _BARRIER_BYTES * int(attrs["subs"])
        offset = plus(of(op.operands[0]), _BARRIER_BYTES * int(attrs["sub"]))
        scaled = apply("mul", index, const(scale, 64), bits=64)
        address = plus(offset, scaled.value) if scaled.op == "const" else apply("add", scaled, offset, bits=64)
        made = model.Op(
            PIPES[op.name],
            op.name,
            op.span,
            barrier=Place(address, _BARRIER_BYTES),
            parity=of(op.operands[2]) if op.name == "pipe.wait" else None,
            pipeline=str(attrs["pipeline"]),
            method=str(attrs["method"]),
            elected=op.name == "pipe.commit_mma" and len(op.operands) < 3,
        )
        if op.name != "pipe.commit_mma" or made.elected:
            return made
        chosen = apply("ne", of(op.operands[2]), const(0), bits=1)
        return Branch(chosen, Seq((made,)), Seq(()), op.span)

    def _new(self, op: Op) -> None:
        attrs = op.attrs
        full, empty = (self.integers.of(v) for v in op.operands)
        subs = int(attrs.get("full_subs", 1)), int(attrs.get("empty_subs", 1))
        name, stages = str(attrs["pipeline"]), int(attrs["stages"])
        self.pipelines.append(Pipeline(name, bool(attrs["producer"]), stages, full, empty, *subs, op.span))

    def _matrix_row(self, op: Op, what: Effect) -> Node | None:
        """An instruction of tensor cores whose operands are described by bits; None for another."""
        from ptxdsl.protocol import tensor_places
        from ptxdsl.protocol.matrix_places import copied_places, operand_places, product_places
        from ptxdsl.protocol.product_form import column_shift, product_form

        name, of, operands = op.name, self.integers.of, op.operands
        if name in _DESCRIPTORS:
            a, b = _DESCRIPTORS[name]
            first = None if a is None else of(operands[a])
            attrs = op.attrs
            places = operand_places(name, first, of(operands[b]), attrs["n"], attrs["k"], attrs["types"], attrs["tail"])
            return model.Op(what, name, op.span, reads=places)
        if name in _PRODUCTS:
            a, b, said = _PRODUCTS[name]
            first = None if a is None else of(operands[a])
            instruction = operands[said]
            assert isinstance(instruction, Const)
            form = product_form(name, op.attrs, int(instruction.value))
            masks = operands[_ELECTS[name] + 1 :] if form.stationary else []
            shift = column_shift(masks[0].value if isinstance(masks[0], Const) else None, form) if masks else 0
            reads, writes = tensor_places.product(form, [of(v) for v in operands[:7]])
            reads += product_places(first, of(operands[b]), form, shift)
            adds = of(operands[_ADDS[name]])
            group = const(form.cta_group)
            return model.Op(what, name, op.span, count=group, reads=reads, writes=writes, adds=adds)
        if name in _TENSOR_COPIES:
            group, shape = const(int(op.attrs["cta_group"])), str(op.attrs["shape"])
            reads, writes = copied_places(of(operands[1]), shape), tensor_places.copied(of(operands[0]), shape)
            return model.Op(what, name, op.span, count=group, reads=reads, writes=writes)
        touches = tensor_places.row_places(name, [of(v) for v in operands[:1]], op.attrs)
        if touches is None:
            return None
        group = const(int(op.attrs.get("cta_group", 1)))
        return model.Op(what, name, op.span, count=group, reads=touches[0], writes=touches[1])

    def _row(self, op: Op, what: Effect) -> Node:
        name, of, operands = op.name, self.integers.of, op.operands
        if name in _DESCRIPTORS or name.startswith("tcgen05_"):
            made = self._matrix_row(op, what)
            if made is not None:
                return made
        touched = what.space in SHARED and what.kind in ACCESSES | {Kind.ASYNC_COPY}
        if (touched or name.startswith("cp_async_bulk_s2g")) and name not in _READS and name not in _WRITES:
            return Unmodelled(op.span, f"the memory that `{name}` touches is not modelled", ONE_RUN)

        def operand(index: int | None) -> Expr | None:
            return None if index is None or index >= len(operands) else of(operands[index])

        named = what.kind in (Kind.NAMED_SYNC, Kind.NAMED_ARRIVE)
        barrier = None if named else operand(what.barrier)
        if barrier is not None and name in _RANKS:
            barrier = apply("mapa", barrier, of(operands[_RANKS[name]]), bits=64)
        count = operand(what.count) if what.kind is not Kind.BAR_EXPECT else None
        if "num_threads" in op.attrs or what.kind is Kind.WAIT_GROUP:
            count = const(int(op.attrs.get("num_threads", op.attrs.get("n", 0))))
        elif what.kind is Kind.REGISTERS:
            count = const(int(op.attrs["count"]))
        size = const(_BYTES[name]) if name in _BYTES else operand(what.bytes)
        is_wait = what.kind in (Kind.BAR_WAIT, Kind.BAR_TEST)
        return model.Op(
            what,
            name,
            op.span,
            barrier=None if barrier is None else Place(barrier, _BARRIER_BYTES),
            parity=operand(1) if is_wait else None,
            count=count,
            bytes=size,
            id=operand(what.barrier) if named else None,
            mask=_ALL_CTAS if name in _EVERYWHERE else operand(_MASKS.get(name, _lanes(name, what))),
            writes=self._places(op, _WRITES.get(name, ())),
            reads=self._places(op, _READS.get(name, ())),
        )

    def _places(self, op: Op, touch: _Touch) -> tuple[Place, ...]:
        found = []
        for operand, width in touch:
            size: int | Expr | None
            if isinstance(width, int):
                size = width
            elif width is None:
                size = int(op.attrs.get("bytes", 0)) or None
            elif width.startswith("$"):
                value = op.operands[int(width[1:])]
                size = int(value.value) if isinstance(value, Const) else self.integers.of(value)
            else:
                size = int(op.attrs[width])
            source = [value for i, value in enumerate(op.operands) if i != operand]
            written = None if op.name in _MADE_ELSEWHERE else Stored(self.sources, source)
            found.append(Place(self.integers.of(op.operands[operand]), size, written))
        return tuple(found)
