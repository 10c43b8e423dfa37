"""``tcgen05.mma``: one thread lets the tensor cores multiply matrices in shared memory into tensor memory.

Each thread that executes the instruction issues a product of its own. It is checked where it is issued and carried out
in the order of the CTA's pipe; then it reads shared memory, so a tile that is overwritten too early spoils the result.

Source: PTX ISA, "tcgen05.mma", "tcgen05.mma.sp", "tcgen05.mma.ws",
"Block Scaling for tcgen05.mma.sync", "Data Path Layout Organization".
Not said there but seen on the card (by the authors of CUTLASS's examples): ``.ashift`` moves the rows of A in tensor
memory, after the product has read them, within each partition of 32 lanes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ptxdsl.ptx.module import Address
from ptxdsl.sim.host import Fault, Group, handles
from ptxdsl.sim.layout import RANK_SHIFT
from ptxdsl.sim.machine.timeline import matrix_cycles
from ptxdsl.sim.matrix.arithmetic import quiet
from ptxdsl.sim.matrix.sparse import expand
from ptxdsl.sim.matrix.wgmma_descriptor import CHUNK
from ptxdsl.sim.tcgen05 import sparse
from ptxdsl.sim.tcgen05.descriptor import (
    BAD_INSTRUCTION,
    BITS,
    InstructionDescriptor,
    SharedDescriptor,
    check_long_rows,
    check_scales,
    check_swizzle,
    decode_instruction,
    decode_shared,
)
from ptxdsl.sim.tcgen05.layout import (
    LANES_OF_WARP,
    LAYOUTS,
    Layout,
    Strip,
    column_shift,
    layout_id,
    scale_rows,
    scale_step,
    shared_bits,
    tile,
    zero_columns,
)
from ptxdsl.sim.tcgen05.matmul import multiply, scale_values, scaled, shared_matrix, tensor_columns, tensor_matrix
from ptxdsl.sim.tcgen05.mma_form import Form, operands_of, parse, unsupported
from ptxdsl.sim.tcgen05.sync import Work, ctas_of
from ptxdsl.sim.tcgen05.tensor_memory import BAD_ADDRESS, Access, Region, column_of, lane_of, lanes_mask, tensor_memory

if TYPE_CHECKING:
    from ptxdsl.sim.machine.cta import Cta

Array = npt.NDArray[Any]

ALL_LANES = lanes_mask(0, 128)
# Scale addresses may carry the scale factor id in their upper two bits (CUTLASS has them so), which is not looked at.
_SCALE_ADDRESS = 0x3FFF_FFFF


@handles("tcgen05.mma", check=unsupported)
def execute(group: Group) -> None:
    form = parse(group.instruction.opcode)
    assert isinstance(form, Form)
    o = operands_of(group.instruction, form)
    ctas = ctas_of(group)
    columns = [
        group.values(o.d, "u32"),
        group.values(o.a, "u32" if isinstance(o.a, Address) else "b64"),
        group.values(o.b, "b64"),
        group.values(o.idesc, "b32"),
        group.values(o.enable, "pred"),
        *(group.values(scale, "u32") for scale in o.scales),
    ]
    masks = [group.values(item, "b32") for item in o.disabled]
    zero_masks = group.values(o.zero_mask, "b64") if o.zero_mask is not None else None
    metadata = group.values(o.metadata, "u32") if o.metadata is not None else None
    for thread, (d, a, b, idesc, enable, *scales) in enumerate(zip(*columns, strict=True)):
        descriptor = decode_instruction(idesc, form.kind, cta_group=form.cta_group, ws=form.ws, sparse=form.sparse)
        product = Product(group, ctas, form, descriptor, bool(enable), o.scale_input)
        product.place_d(d, sum(mask[thread] << 32 * i for i, mask in enumerate(masks)))
        if isinstance(o.a, Address):
            product.place_a_in_tensor_memory(a)
        else:
            product.place_a_in_shared_memory(a)
        product.place_b(b, zero_masks[thread] if zero_masks is not None else 0)
        if scales:
            product.place_scales(*scales)
        if metadata is not None:
            product.place_metadata(metadata[thread])
        product.issue()


class Product(Work):
    """One product. ctas: the CTA, or the pair: each has ``layout.rows`` rows of A and D, and a part of B's columns."""

    def __init__(
        self,
        group: Group,
        ctas: tuple[Cta, ...],
        form: Form,
        descriptor: InstructionDescriptor,
        enable: bool,
        scale_input: int,
    ) -> None:
        bits = max(BITS[descriptor.a_type], BITS[descriptor.b_type])
        super().__init__(group, matrix_cycles(descriptor.m // len(ctas), descriptor.n, descriptor.k, bits))
        self.ctas = ctas
        self.form = form
        self.descriptor = descriptor
        self.enable = enable
        self.scale_input = scale_input
        self.layout: Layout = LAYOUTS[layout_id(descriptor.m, form.cta_group, form.ws, form.sparse)]
        self.packed = descriptor.kind in ("mxf4", "mxf4nvf4")
        self.disabled = 0
        self.d_column = self.lane = 0
        self.a_column: int | None = None
        self.a_shared: SharedDescriptor | None = None
        self.b_shared: SharedDescriptor
        self.b_skip = 0
        self.zero: Array | None = None
        self.scale_columns: tuple[int, int] | None = None
        self.metadata_column: int | None = None
        self.stored_k = descriptor.k // 2 if form.sparse else descriptor.k
        if not 0 <= scale_input <= 15 or (scale_input and form.kind not in ("f16", "tf32")):
            raise Fault(
                BAD_INSTRUCTION,
                f"scale-input-d of {scale_input} with .kind::{form.kind}",
                "it is 0 to 15, with .kind::f16 and .kind::tf32",
            )
        if form.ashift and descriptor.m < 128:
            raise Fault(BAD_INSTRUCTION, f".ashift with M = {descriptor.m}", "M is 128 or 256 with .ashift")

    # Issue: where everything lies

    @property
    def part_columns(self) -> int:
        """Columns of tensor memory that D takes."""
        return self.descriptor.n // self.layout.parts

    def _lanes(self, disabled: int = 0) -> int:
        mask = 0
        for strip in self.layout.strips:
            mask |= lanes_mask(strip.lane + self.lane, strip.rows)
        return mask & ~disabled

    def _access(self, cta: Cta, lanes: int, first: int, columns: int, writes: bool = False) -> None:
        self.touches(cta, Access(Region(lanes, first, first + columns), writes, self.origin))

    def place_d(self, address: int, disabled: int) -> None:
        """disabled: a bit for each lane, of the even CTA from bit 0 on, of the odd one from bit 128 on."""
        self.lane, self.d_column = lane_of(address), column_of(address)
        if self.lane not in self.layout.alignments:
            allowed = " or ".join(map(str, self.layout.alignments))
            raise Fault(
                BAD_ADDRESS,
                f"{self.origin.opcode}: D at lane {self.lane} with M = {self.descriptor.m}",
                f"the lane, the address's high 16 bits, must be {allowed}",
            )
        self.disabled = disabled
        for i, cta in enumerate(self.ctas):
            lanes = self._lanes(disabled >> 128 * i & ALL_LANES)
            if lanes:
                self._access(cta, lanes, self.d_column, self.part_columns, writes=True)

    def place_a_in_tensor_memory(self, address: int) -> None:
        d = self.descriptor
        if lane_of(address) != self.lane:
            raise Fault(
                BAD_ADDRESS,
                f"{self.origin.opcode}: A at lane {lane_of(address)} and D at lane {self.lane}",
                "A and D must begin at the same lane",
            )
        if d.transpose_a:
            raise Fault(BAD_INSTRUCTION, "A in tensor memory cannot be transposed")
        self.a_column = column_of(address)
        for cta in self.ctas:
            columns = tensor_columns(d.a_type, self.packed, self.stored_k)
            self._access(cta, self._lanes(), self.a_column, columns, writes=self.form.ashift)

    def place_a_in_shared_memory(self, value: int) -> None:
        d = self.descriptor
        self.a_shared = decode_shared(value, "A")
        check_long_rows(self.a_shared, d.k, "A")
        check_swizzle(self.a_shared, BITS[d.a_type], d.transpose_a, "A")

    def place_b(self, value: int, zero_mask: int) -> None:
        d = self.descriptor
        self.b_shared = decode_shared(value, "B")
        check_long_rows(self.b_shared, d.k, "B")
        check_swizzle(self.b_shared, BITS[d.b_type], d.transpose_b, "B")
        if zero_mask:
            self.b_skip = column_shift(zero_mask)
            most = 16 if d.m == 32 else 32
            if self.b_skip > most:
                raise Fault(
                    BAD_INSTRUCTION,
                    f"the zero-column mask {zero_mask:#018x} shifts columns by {self.b_skip}",
                    f"the shift is at most {most} with M = {d.m}",
                )
            self.zero = zero_columns(zero_mask, d.m, d.n)

    def place_scales(self, a: int, b: int) -> None:
        d = self.descriptor
        check_scales(d, self.form.scale_vec)
        columns = []
        for address, rows, id in ((a, self.layout.rows, d.scale_a_id), (b, self.part_columns, d.scale_b_id)):
            address &= _SCALE_ADDRESS
            more = (id + self._factors - 1) // 4 * scale_step(rows)
            if lane_of(address):
                raise Fault(
                    BAD_ADDRESS,
                    f"{self.origin.opcode}: scale factors at lane {lane_of(address)}",
                    "scale factors lie in all lanes; the address's lane is 0",
                )
            columns.append(column_of(address))
            for cta in self.ctas:
                self._access(cta, ALL_LANES, column_of(address), more - (-rows // LANES_OF_WARP))
        self.scale_columns = (columns[0], columns[1])

    @property
    def _factors(self) -> int:
        """Scale factors of a row."""
        return self.form.scale_vec * 3 // 2 if self.descriptor.k == 96 else self.form.scale_vec

    def place_metadata(self, address: int) -> None:
        d = self.descriptor
        most = 1 if d.kind in sparse.SELECTED else 0
        if d.sparsity_selector > most or lane_of(address) != self.lane:
            raise Fault(
                BAD_INSTRUCTION,
                f"metadata at lane {lane_of(address)} with the sparsity selector {d.sparsity_selector}",
                f"with .kind::{d.kind} the selector is {'0 or 1' if most else '0'}, the lane that of D, {self.lane}",
            )
        self.metadata_column = column_of(address)
        for cta in self.ctas:
            self._access(cta, self._lanes(), self.metadata_column, sparse.COLUMNS)

    # Carrying it out

    def carry_out(self) -> None:
        d = self.descriptor
        b = np.concatenate([self._b(cta) for cta in self.ctas])
        if self.zero is not None:
            b = np.where(self.zero[:, None], 0, b)
        if d.negate_b:
            b = -b
        with quiet():
            for i, cta in enumerate(self.ctas):
                self._multiply_in(cta, b, self.disabled >> 128 * i & ALL_LANES)
        if self.form.ashift and self.a_column is not None:
            columns = tensor_columns(d.a_type, self.packed, self.stored_k)
            for cta in self.ctas:
                shift_down(tensor_memory(self.machine, cta).words, 0, 128, self.a_column, columns)

    def _matrix(self, cta: Cta, shared: SharedDescriptor, rows: int, k: int, type: str, transposed: bool) -> Array:
        """(rows, k) values of a matrix in a CTA's shared memory."""
        place = tile(shared, rows, k, shared_bits(BITS[type], self.packed), transposed)
        address = (cta.rank << RANK_SHIFT) + shared.address + place.offset
        memory = self.machine.memory.view(cta, "shared::cta", address, place.size, write=False)
        if self.machine.watch is not None:
            self.machine.accesses(cta, "shared::cta", address + CHUNK * place.chunks.reshape(-1), CHUNK, "read")
        return shared_matrix(memory, place, type, self.packed, transposed)

    def _b(self, cta: Cta) -> Array:
        d = self.descriptor
        rows = d.n // len(self.ctas)
        values = self._matrix(cta, self.b_shared, rows + self.b_skip, d.k, d.b_type, d.transpose_b)
        return values[self.b_skip : self.b_skip + rows]

    def _multiply_in(self, cta: Cta, b: Array, disabled: int) -> None:
        d = self.descriptor
        words = tensor_memory(self.machine, cta).words
        if self.a_shared is not None:
            whole_a = self._matrix(cta, self.a_shared, self.layout.rows, self.stored_k, d.a_type, d.transpose_a)
        for strip in self.layout.per_partition() if self.scale_columns else self.layout.strips:
            lanes = slice(strip.lane + self.lane, strip.lane + self.lane + strip.rows)
            if self.a_column is not None:
                columns = tensor_columns(d.a_type, self.packed, self.stored_k)
                a = tensor_matrix(words[lanes, self.a_column : self.a_column + columns], d.a_type, self.packed)
            else:
                a = whole_a[strip.row : strip.row + strip.rows]
            if self.metadata_column is not None:
                a = self._with_zeros(words[lanes], a)
            if d.negate_a:
                a = -a
            part_b = b[strip.part * self.part_columns : (strip.part + 1) * self.part_columns]
            if self.scale_columns:
                a, part_b = self._scale(words, strip, a, part_b)
            place = words[lanes, self.d_column : self.d_column + self.part_columns]
            result = multiply(
                a,
                part_b,
                place if self.enable else None,
                d.d_type,
                scale_input=self.scale_input,
                saturate=d.saturate,
            )
            if disabled:
                kept = np.array([disabled >> lane & 1 for lane in range(lanes.start, lanes.stop)], bool)
                np.copyto(place, result, where=~kept[:, None])
            else:
                place[...] = result

    def _with_zeros(self, words: Array, stored: Array) -> Array:
        """Rows of A of which half is stored; words: of their lanes."""
        assert self.metadata_column is not None
        d, first = self.descriptor, self.metadata_column
        columns = sparse.chosen_columns(words[:, first : first + sparse.COLUMNS], d.kind, d.sparsity_selector)
        if columns is None:
            help = "each two numbers of 2 bits name two elements of four, with tf32 0b0100 and 0b1110 one of two"
            raise Fault(BAD_INSTRUCTION, f"{self.origin.opcode}: metadata that names one element of A twice", help)
        return expand(stored, columns, d.k)

    def _scale(self, words: Array, strip: Strip, a: Array, b: Array) -> tuple[Array, Array]:
        """A and B with the scale factors that the partition of the strip's lanes holds."""
        assert self.scale_columns is not None
        d, count = self.descriptor, self._factors
        partition = words[strip.lane // LANES_OF_WARP * LANES_OF_WARP :][:LANES_OF_WARP]
        factors = []
        for column, first, rows, of, id in (
            (self.scale_columns[0], strip.row, strip.rows, self.layout.rows, d.scale_a_id),
            (self.scale_columns[1], 0, self.part_columns, self.part_columns, d.scale_b_id),
        ):
            step = scale_step(of)
            block = partition[:, column : column + (id + count - 1) // 4 * step - (-(first + rows) // LANES_OF_WARP)]
            factors.append(scale_values(scale_rows(block, rows, first, count, id, step), d.scale_type))
        return scaled(a, factors[0]), scaled(b, factors[1])


def shift_down(words: Array, lane: int, lanes: int, first: int, columns: int) -> None:
    """Each lane gets what the next one holds, within each partition of 32 lanes; the last of them keeps its own."""
    block = words[lane : lane + lanes, first : first + columns].reshape(-1, LANES_OF_WARP, columns)
    moved = block.copy()
    moved[:, :-1] = block[:, 1:]
    words[lane : lane + lanes, first : first + columns] = moved.reshape(lanes, columns)
