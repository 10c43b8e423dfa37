"""Products for comparisons with ``isa_tables``: operands placed and D read by the tables, the instruction run as PTX.

Elements are small integers, so that D is exact whatever the order of additions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from isa_bench import Probe, Words, run
from isa_tables import containers, data_paths, descriptors, scale_factors
from isa_tables.shared_layouts import SWIZZLE_BITS, k_major, mn_major, swizzled

Codes = npt.NDArray[np.int64]
UNTOUCHED = 0x7FC0BEEF  # what tensor memory holds where nothing is placed


def codes(kind: str, shape: tuple[int, int], generator: np.random.Generator, largest: float = 3.0) -> Codes:
    """Random elements of a type, small enough for exact sums."""
    if kind in ("u8", "s8"):
        return generator.integers(0, 256, shape)
    wanted = np.arange(-int(largest), int(largest) + 1)
    exact = {containers.value(kind, word): word for word in _small_codes(kind)}
    return np.vectorize(lambda v: exact[float(v)])(generator.choice(wanted, shape))


def _small_codes(kind: str) -> list[int]:
    bits, _, mantissas, bias = containers.FORMATS[kind]
    if bits <= 8:
        return [word for word in range(1 << bits) if word != 1 << bits - 1]
    positive = [0, *((bias + e << mantissas) | (m << mantissas - 1) for e in (0, 1) for m in (0, 1))]
    return positive + [word | 1 << bits - 1 for word in positive[1:]]


def values(kind: str, words: Codes) -> npt.NDArray[np.float64]:
    """The values of elements."""
    unique = {int(word): containers.value(kind, int(word)) for word in np.unique(words)}
    return np.vectorize(unique.__getitem__, otypes=[np.float64])(words)


@dataclass
class Operand:
    """How a matrix lies in shared memory.

    mn: its major-ness. leading, stride: bytes. start: of its atoms in the given bytes. advance: bytes along K by which
    the descriptor's start address is further on (K-major).
    """

    mode: str = "none"
    mn: bool = False
    leading: int = 0
    stride: int = 0
    start: int = 0
    advance: int = 0

    def descriptor(self) -> int:
        return descriptors.shared(self.start + self.advance, self.leading, self.stride, self.mode)

    def place(self, image: bytearray, kind: str, multiplicand: str, words: Codes) -> None:
        """Writes the elements (row along M or N, k)."""
        if self.mn:
            size = containers.bits_of(multiplicand) // 8
            row, k = np.indices(words.shape)
            for part in range(size):
                at = mn_major(row * size + part, k, self.mode, self.leading, self.stride)
                self._write(image, at, words >> 8 * part & 255)
            return
        rows = [containers.shared_bytes(kind, multiplicand, elements) for elements in words.tolist()]
        content = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), -1)
        row, byte = np.indices(content.shape)
        self._write(image, k_major(row, byte + self.advance, self.mode, self.leading, self.stride), content)

    def _write(self, image: bytearray, offsets: Codes, content: npt.NDArray[Any]) -> None:
        # The given bytes begin at a multiple of 1024, where every swizzle's pattern begins.
        at = swizzled(self.start + offsets, self.mode)
        image.extend(bytes(max(int(at.max()) + 1 - len(image), 0)))
        np.frombuffer(image, np.uint8)[at] = content


def compact(mode: str, mn: bool, rows: int, row_bytes: int, k: int, start: int, spare: int = 0) -> Operand:
    """An operand with the strides of a dense arrangement, or with spare bytes between atoms (a multiple of 1024)."""
    width = SWIZZLE_BITS[mode][0]
    if not mn:
        if mode == "none":
            leading = 128 + spare
            return Operand(mode, mn, leading, leading * -(-row_bytes // 16) + spare, start)
        return Operand(mode, mn, 16, 8 * width + spare, start)
    if mode == "none":  # all of M or N before the next 8 k
        stride = 128 + spare
        return Operand(mode, mn, stride * (rows * row_bytes // 16) + spare, stride, start)
    atom = (4 if mode == "128b_atom32" else 8) * width + spare
    return Operand(mode, mn, atom, atom * -(-rows * row_bytes // width) + spare, start)


@dataclass
class Product:
    """D = A B, or D + A B with accumulate, of one tcgen05.mma."""

    kind: str
    a_type: str
    b_type: str
    d_type: str
    m: int
    n: int
    cta_group: int = 1
    a: Operand | None = None  # None: in tensor memory
    b: Operand = field(default_factory=Operand)
    ws: bool = False
    accumulate: bool = False
    d_column: int = 32
    d_lane: int = 0
    a_column: int = 320
    vector: str | None = None
    scale_type: str | None = None
    a_scale_id: int = 0
    b_scale_id: int = 0
    a_scales_column: int = 400
    b_scales_column: int = 416
    fields: dict[str, int] = field(default_factory=dict)
    suffix: str = ""  # of the opcode, in place of .scale_vec with block scaling
    more: str = ""  # operands after idesc and before enable-input-d
    last: str = ""  # operands after enable-input-d
    descriptors: tuple[int, ...] = ()  # %d2 and further
    issuer: int = 0
    rubbish: int = 0  # in the upper halves of a D of 16 bits that is added to
    seed: int = 0

    def __post_init__(self) -> None:
        generator = np.random.default_rng(self.seed)
        self.k = descriptors.DENSE_K[self.kind]
        self.layout = data_paths.layout_of(self.m, self.cta_group, ws=self.ws)
        self.a_codes = codes(self.a_type, (self.m, self.k), generator)
        self.b_codes = codes(self.b_type, (self.n, self.k), generator)
        self.a_scales = self.b_scales = None
        if self.vector is not None:
            number = scale_factors.VECTORS[self.vector][0]
            choice = (
                [126, 127, 128, 129] if self.scale_type == "ue8m0" else [0x30, 0x38, 0x3C, 0x40]
            )  # 1/2, 1, 1.5 or 4, 2
            self.a_scales = generator.choice(choice, (self.m, number))
            self.b_scales = generator.choice(choice, (self.n, number))
        self.before = generator.integers(-8, 9, (self.m, self.n))

    def expected(self) -> npt.NDArray[np.float64]:
        a, b = values(self.a_type, self.a_codes), values(self.b_type, self.b_codes)
        if self.vector is not None:
            assert self.a_scales is not None and self.b_scales is not None and self.scale_type is not None
            width = scale_factors.block(self.k, self.vector)
            a = a * values(self.scale_type, self.a_scales).repeat(width, axis=1)
            b = b * values(self.scale_type, self.b_scales).repeat(width, axis=1)
        return a @ b.T + (self.before if self.accumulate else 0)

    def images(self) -> list[bytes]:
        """Shared memory of each CTA: its rows of A, its columns of B."""
        parts = []
        for cta in range(self.cta_group):
            image = bytearray()
            rows, columns = self.m // self.cta_group, self.n // self.cta_group
            if self.a is not None:
                self.a.place(image, self.kind, self.a_type, self.a_codes[cta * rows : (cta + 1) * rows])
            self.b.place(image, self.kind, self.b_type, self.b_codes[cta * columns : (cta + 1) * columns])
            parts.append(bytes(image))
        return parts

    def words(self, values: npt.NDArray[np.float64]) -> Words:
        """Elements of D as they stand in tensor memory."""
        dtype = {"s32": np.int32, "f32": np.float32, "f16": np.float16}[self.d_type]
        exact = values.astype(dtype)
        assert (exact == values).all()
        return exact.view(f"u{exact.itemsize}").astype(np.uint32)

    def places(self) -> tuple[npt.NDArray[np.int64], ...]:
        """(CTA, lane, column) of every element of D, as indices of tensor memory."""
        i, j = np.indices((self.m, self.n))
        cta, lane, column = data_paths.d_place(self.layout, i, j, self.n)
        return cta + 0 * i, lane + self.d_lane, column + self.d_column

    def lanes(self) -> Words:
        """Tensor memory before: D (rubbish, or what is added to), A and the scale factors if they are there."""
        state = np.full((self.cta_group, 128, 512), UNTOUCHED, np.uint32)
        if self.accumulate:
            state[self.places()] = self.words(self.before.astype(float)) | self.rubbish
        if self.a is None:
            for i in range(self.m):
                row = containers.tensor_memory_bytes(self.kind, self.a_type, [int(e) for e in self.a_codes[i]])
                packed = np.frombuffer(row, np.uint32)
                for cta, lane in data_paths.a_places(self.layout, i):
                    state[cta, lane + self.d_lane, self.a_column : self.a_column + len(packed)] = packed
        if self.vector is not None:
            assert self.a_scales is not None and self.b_scales is not None
            octets = state.view(np.uint8).reshape(self.cta_group, 128, 512, 4)
            rows = self.m // self.cta_group
            for (i, number), scale in np.ndenumerate(self.a_scales):
                for lane, column, byte in scale_factors.a_places(int(i) % rows, int(number), self.a_scale_id):
                    octets[int(i) // rows, lane, self.a_scales_column + column, byte] = scale
            for (j, number), scale in np.ndenumerate(self.b_scales):
                for place in scale_factors.b_places(int(j), int(number), self.b_scale_id, self.layout, self.n):
                    lane, column, byte = place
                    octets[:, lane, self.b_scales_column + column, byte] = scale
        return state

    def idesc(self) -> int:
        transposes = {}
        if self.a is not None and self.a.mn:
            transposes["transpose_a"] = 1
        if self.b.mn:
            transposes["transpose_b"] = 1
        ids = {"a_scale_id": self.a_scale_id, "b_scale_id": self.b_scale_id} if self.vector is not None else {}
        fields = {"m": self.m, "n": self.n, **transposes, **ids, **self.fields}
        return descriptors.typed(self.kind, self.a_type, self.b_type, self.d_type, self.scale_type, **fields)

    def body(self) -> str:
        """The instruction, on %d0 (A) and %d1 (B)."""
        lines = f"add.u32 %v0, %t, {self.d_lane << 16 | self.d_column};"
        a = "%d0"
        if self.a is None:
            lines += f"add.u32 %v1, %t, {self.d_lane << 16 | self.a_column};"
            a = "[%v1]"
        suffix, scales = self.suffix, ""
        if self.vector is not None:
            lines += f"add.u32 %x, %t, {self.a_scales_column}; add.u32 %y, %t, {self.b_scales_column};"
            suffix = f".block_scale{self.suffix or f'.scale_vec::{self.vector}'}"
            scales = ", [%x], [%y]"
        opcode = f"tcgen05.mma{'.ws' if self.ws else ''}.cta_group::{self.cta_group}.kind::{self.kind}{suffix}"
        enable = "%yes" if self.accumulate else "%no"
        return f"{lines}\n{opcode} [%v0], {a}, %d1, %w0{scales}{self.more}, {enable}{self.last};"

    def probe(self) -> Probe:
        """The kernel with this one product."""
        a = self.a.descriptor() if self.a is not None else 0
        return Probe(
            self.body(),
            shared=self.images(),
            lanes=self.lanes(),
            descriptors=(a, self.b.descriptor(), *self.descriptors),
            words=(self.idesc(),),
            issuer=self.issuer,
        )


def found(product: Product, state: Words) -> Words:
    """D as it stands in tensor memory (its low half where it has 16 bits)."""
    d = state[product.places()]
    return d & 0xFFFF if product.d_type == "f16" else d


def check(
    product: Product, expected: npt.NDArray[np.float64] | None = None, kept: npt.NDArray[np.bool_] | None = None
) -> None:
    """D is A B (or expected) where the table says, and nothing else has changed. kept: where D keeps its value."""
    probe = product.probe()
    after = run(probe)
    assert probe.lanes is not None
    wanted = product.words(product.expected() if expected is None else expected)
    if kept is not None:
        wanted = np.where(kept, found(product, probe.lanes), wanted)
    np.testing.assert_array_equal(found(product, after), wanted)
    changed = probe.lanes != after
    changed[product.places()] = False
    assert not changed.any(), np.argwhere(changed)[:8]
