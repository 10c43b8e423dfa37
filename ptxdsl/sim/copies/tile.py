"""What a tensor copy in tile mode moves: the box of a tensor map at some coordinates, and its place in shared memory.

The box is a small array of rows. In global memory it is a strided block, of which what lies outside the tensor is left
out; in shared memory its rows follow one another, then a swizzle exchanges chunks. Source: PTX ISA, "Tensors" (tiled
mode, bounding box, traversal stride, out of boundary access, interleave layout, swizzling modes). What it leaves open
is as an H200 does it: rows narrower than the swizzle's span are padded to it; with
traversal strides the box has ceil(box / stride) elements; a row starts at a multiple of 16 bytes of the tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxdsl.record import dataclass
from ptxdsl.sim.copies.swizzle import SWIZZLES, swizzled
from ptxdsl.sim.copies.tensor_description import INTERLEAVES, Description
from ptxdsl.sim.host import Fault

Array = npt.NDArray[Any]
# The bytes of global memory at an address, to be read or written in place.
GlobalView = Callable[[int, int], npt.NDArray[np.uint8]]

SHARED_ALIGNMENT = 128
NAN_FILL = 0x7FF7  # each 16 bits of elements outside the tensor, of whatever floating type
_TF32_NAN = np.uint32(0x7FFFE000)


@dataclass(frozen=True, slots=True)
class Tile:
    """The shape of a map's box. counts: items in each dimension, from the innermost on; an item is an element, or a
    group of 16 packed ones (``per_item`` in units of coordinates), or a slice of channels.

    item: bytes of an item in global memory, in shared memory ``spread``. row: bytes of a row in shared memory;
    ``pitch`` from one row to the next. size: bytes of shared memory, ``transferred`` those that an mbarrier is told.
    """

    counts: tuple[int, ...]
    per_item: int
    item: int
    spread: int
    row: int
    pitch: int

    @property
    def rows(self) -> int:
        rows = 1
        for count in self.counts[1:]:
            rows *= count
        return rows

    @property
    def size(self) -> int:
        return self.rows * self.pitch

    @property
    def transferred(self) -> int:
        return self.rows * self.row


@lru_cache(256)
def tile_of(said: Description) -> Tile:
    element = said.element
    counts = [-(-box // step) for box, step in zip(said.box, said.element_strides, strict=True)]
    slice_bytes = INTERLEAVES[said.interleave]
    per_item, item, spread = 1, element.bits // 8, element.bits // 8
    if slice_bytes:
        item = spread = slice_bytes
        counts[-2] = 1  # a tile has one slice of channels, whatever the box says
    else:
        if element.packed is not None:
            item, spread = element.packed
            per_item = 16
            if item == spread:  # without gaps: two elements a byte
                per_item, item, spread = 2, 1, 1
        counts[0] = said.box[0] // per_item  # dimension 0 has no traversal stride
    row = counts[0] * spread
    return Tile(tuple(counts), per_item, item, spread, row, max(row, SWIZZLES[said.swizzle].span))


def check_start(said: Description, at: Sequence[int], write: bool = False) -> None:
    """Raises Fault where the card refuses the coordinates."""
    if write and min(at) < 0:
        raise Fault(
            "E1155",
            f"a tile is stored at coordinates {', '.join(map(str, at))} (innermost first): none may be negative",
            "tiles that are loaded may start outside the tensor, those that are stored may only end there",
        )
    if said.interleave != "none":
        return
    element = said.element
    if element.packed is not None and element.packed[0] != element.packed[1]:
        if at[0] % 128:
            raise Fault(
                "E1155",
                f"the innermost coordinate {at[0]} of a tile of {element.name} is not a multiple of 128",
            )
    elif at[0] * element.bits % 128:
        raise Fault(
            "E1155",
            f"the tile starts at element {at[0]} of the innermost dimension, {at[0] * element.bits / 8:g} bytes; it "
            "must be a multiple of 16 bytes",
            f"the innermost coordinate of a tensor of {element.name} must be a multiple of {128 // element.bits}",
        )


@dataclass(frozen=True, slots=True)
class Block:
    """The part of a tile that lies in the tensor. start: its first byte in global memory; size: up to its last one.
    shape, strides: of its items, the outermost dimension first. inside: where it lies in the whole tile."""

    start: int
    size: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    inside: tuple[slice, ...]

    def array(self, view: GlobalView, item: int) -> Array:
        """The items' bytes in place."""
        return np.ndarray(
            (*self.shape, item),
            np.uint8,
            view(self.start, self.size),
            strides=(*self.strides, 1),
        )


def block_at(said: Description, at: Sequence[int], write: bool = False) -> Block | None:
    """The part of the tile at these coordinates that lies in the tensor, None if there is none. What is written ends
    at a multiple of 16 bytes of the innermost dimension."""
    return _block_at(said, tuple(at), write)


@lru_cache(256)  # a copy asks again at each of its steps
def _block_at(said: Description, at: tuple[int, ...], write: bool) -> Block | None:
    tile = tile_of(said)
    start, size = said.address, tile.item
    shape, strides, inside = [], [], []
    for number, count in enumerate(tile.counts):
        first, extent, step, stride = at[number], said.dims[number], said.element_strides[number], tile.item
        if number:
            stride = said.strides[number - 1]
        elif said.interleave == "none":
            first, extent, step = first // tile.per_item, extent // tile.per_item, 1
            if write and tile.item < 16:
                whole = 16 // tile.item
                extent = -(-extent // whole) * whole
        low = max(0, -(first // step))
        high = min(count, -((first - extent) // step))
        if low >= high:
            return None
        start += (first + low * step) * stride
        size += (high - low - 1) * step * stride
        shape.append(high - low)
        strides.append(step * stride)
        inside.append(slice(low, high))
    return Block(start, size, tuple(shape[::-1]), tuple(strides[::-1]), tuple(inside[::-1]))


def runs(said: Description, at: Sequence[int], write: bool = False) -> tuple[npt.NDArray[np.int64], int]:
    """The bytes of global memory that a tile moves: addresses, and how many follow each."""
    block = block_at(said, at, write)
    if block is None:
        return np.zeros(0, np.int64), 0
    size, inner = tile_of(said).item, 0
    if block.strides[-1] == size:
        size, inner = size * block.shape[-1], 1
    return block.start + _run_offsets(block.shape, block.strides, len(block.shape) - inner), size


@lru_cache(256)
def _run_offsets(shape: tuple[int, ...], strides: tuple[int, ...], outer: int) -> npt.NDArray[np.int64]:
    """Where the runs begin, of so many outer dimensions."""
    starts = np.zeros(1, np.int64)
    for count, stride in list(zip(shape, strides, strict=True))[:outer]:
        starts = (starts[:, None] + np.arange(count) * stride).reshape(-1)
    return starts


def load(said: Description, at: Sequence[int], view: GlobalView) -> Array:
    """The rows of a tile as shared memory gets them, (rows, row bytes), from global memory. Gaps of packed types are
    zero."""
    tile = tile_of(said)
    rows = np.zeros((tile.rows, tile.row), np.uint8)
    if said.fill == "nan":
        rows.view(np.uint16).fill(NAN_FILL)
    block = block_at(said, at)
    if block is not None:
        items = rows.reshape(*tile.counts[::-1], tile.spread)
        found = block.array(view, tile.item)
        if said.element.tf32:
            found = rounded_to_tf32(np.ascontiguousarray(found).view(np.uint32)).view(np.uint8)
        items[(*block.inside, slice(tile.item))] = found
    return rows


def store(said: Description, at: Sequence[int], rows: Array, view: GlobalView, reduce: Reduce | None = None) -> None:
    """Writes rows from shared memory to the tile's place in global memory, or reduces what is there with them."""
    block = block_at(said, at, write=True)
    if block is None:
        return
    tile = tile_of(said)
    items = rows.reshape(*tile.counts[::-1], tile.spread)
    if tile.item != tile.spread:
        items = packed_six_bits(items)
    new = items[block.inside]
    target = block.array(view, tile.item)
    if reduce is None:
        target[...] = new
    else:
        old = np.ascontiguousarray(target)
        target[...] = reduce(old.reshape(-1), np.ascontiguousarray(new).reshape(-1)).reshape(target.shape)


Reduce = Callable[[npt.NDArray[np.uint8], npt.NDArray[np.uint8]], npt.NDArray[np.uint8]]


def rounded_to_tf32(bits: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """f32 patterns to the nearest tf32 ones, ties to even; NaN becomes the one of tf32."""
    rounded = (bits + np.uint32(0xFFF) + (bits >> 13 & 1)) & np.uint32(0xFFFFE000)
    return np.where((bits & 0x7FFFFFFF) > 0x7F800000, _TF32_NAN, rounded).astype(np.uint32)


def packed_six_bits(items: Array) -> Array:
    """Groups of 16 bytes, each with a code in its low 6 bits, to 12 bytes without gaps (``.b6p2x16``)."""
    codes = (items & 63).astype(np.uint32).reshape(*items.shape[:-1], 4, 4)
    words = codes[..., 0] | codes[..., 1] << 6 | codes[..., 2] << 12 | codes[..., 3] << 18
    octets = np.stack([words & 255, words >> 8 & 255, words >> 16], axis=-1)
    return octets.astype(np.uint8).reshape(*items.shape[:-1], 12)


# In shared memory


@lru_cache(256)
def chunk_numbers(said: Description, start: int) -> npt.NDArray[np.int64] | None:
    """Where the chunks of a tile's rows lie, in row order, as numbers of ``chunk_bytes`` chunks from the tile's start.
    start: the tile's shared address modulo the swizzle's pattern. None: one after another."""
    swizzle = SWIZZLES[said.swizzle]
    if not swizzle.terms:
        return None
    tile, chunk = tile_of(said), chunk_bytes(said)
    rows = np.arange(tile.rows) * tile.pitch
    addresses = start + rows[:, None] + np.arange(0, tile.row, chunk)
    return ((swizzled(addresses, swizzle) - start) // chunk).ravel()


def chunk_bytes(said: Description) -> int:
    return min(16, SWIZZLES[said.swizzle].chunk)


def put(said: Description, shared: npt.NDArray[np.uint8], start: int, rows: Array) -> None:
    """Writes rows to the tile's shared memory (``Tile.size`` bytes that begin at ``start``)."""
    numbers = chunk_numbers(said, start % SWIZZLES[said.swizzle].pattern)
    tile = tile_of(said)
    if tile.item != tile.spread:  # the gaps are left as they are
        groups = shared.reshape(-1, 16)
        if numbers is None:
            groups[:, : tile.item] = rows.reshape(-1, 16)[:, : tile.item]
        else:
            groups[numbers, : tile.item] = rows.reshape(-1, 16)[:, : tile.item]
    elif numbers is None:
        shared[...] = rows.reshape(-1)
    else:
        words = chunk_bytes(said) // 8
        shared.view(np.uint64).reshape(-1, words)[numbers] = rows.reshape(-1).view(np.uint64).reshape(-1, words)


def take(said: Description, shared: npt.NDArray[np.uint8], start: int) -> Array:
    """The rows of a tile from its shared memory, (rows, row bytes)."""
    tile = tile_of(said)
    numbers = chunk_numbers(said, start % SWIZZLES[said.swizzle].pattern)
    if numbers is None:
        return shared.reshape(tile.rows, tile.row).copy()
    words = chunk_bytes(said) // 8
    return shared.view(np.uint64).reshape(-1, words)[numbers].view(np.uint8).reshape(tile.rows, tile.row)
