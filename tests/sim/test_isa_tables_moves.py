"""tcgen05.ld, .st, .cp and .shift in the simulator against the tables of the PTX ISA."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from isa_bench import LANES, THREADS, Probe, Words, run
from isa_tables import containers, copies, descriptors, fragments
from isa_tables.shared_layouts import SWIZZLE_BITS, k_major, swizzled

COLUMNS = 512
SHARED_STEP = 1 << 15  # between the sources of copies
PACKED = pytest.mark.parametrize("packed", [False, True], ids=["words", "16b"])


def _words(seed: int, shape: tuple[int, ...]) -> Words:
    return np.random.default_rng(seed).integers(0, 1 << 32, shape, np.uint32)


def _accesses(shape: str, packed: bool) -> Iterator[tuple[int, int, int, int]]:
    """(count, first lane, first column, half split) of every form of a shape, the largest first."""
    for count in reversed(fragments.counts(shape)):
        wide = 1 + max(
            fragments.word(shape, thread, r)[1] for thread in range(32) for r in range(_registers(shape, count))
        )
        wide *= 2 if packed else 1
        split = wide if shape == "16x32bx2" else 0
        for lane in (0, 16) if fragments.LANES[shape] == 16 else (0,):
            yield count, lane, 8 if wide + split + 8 <= COLUMNS else 0, split


def _registers(shape: str, count: int) -> int:
    return count * fragments.REGISTERS[shape]


def _operands(shape: str, count: int, lane: int, column: int, split: int) -> tuple[str, str, str]:
    """Code that computes the address in %x, the registers, and the half split's operand."""
    registers = "{" + ", ".join(f"%u{r}" for r in range(_registers(shape, count))) + "}"
    return f"add.u32 %x, %mine, {lane << 16 | column};", registers, f", {split}" if shape == "16x32bx2" else ""


@PACKED
@pytest.mark.parametrize("shape", fragments.SHAPES)
def test_loads(shape: str, packed: bool) -> None:
    state = _words(1, (1, LANES, COLUMNS))
    code, expected = ["mul.wide.u32 %wide, %thread, 4; add.u64 %out, %out, %wide;"], []
    for count, lane, column, split in _accesses(shape, packed):
        address, registers, immediate = _operands(shape, count, lane, column, split)
        pack = ".pack::16b" if packed else ""
        code += [address, f"tcgen05.ld.sync.aligned.{shape}.x{count}{pack}.b32 {registers}, [%x]{immediate};"]
        code += ["tcgen05.wait::ld.sync.aligned;"]
        for r in range(_registers(shape, count)):
            code += [f"st.global.b32 [%out + {4 * THREADS * len(expected)}], %u{r};"]
            expected.append(_loaded(state, shape, r, lane, column, split, packed))
    output = np.zeros((len(expected), THREADS), np.uint32)
    run(Probe(every="\n".join(code), lanes=state, output=output.reshape(-1)))
    np.testing.assert_array_equal(output, expected)


def _places(shape: str, r: int, lane: int, column: int, split: int, packed: bool) -> list[tuple[Words, Words]]:
    """(lane, column) of a register of all threads: of the word, or of its low and its high half."""
    threads = np.arange(THREADS)
    arguments = shape, threads % 32, r, split
    found = fragments.halves(*arguments) if packed else [fragments.word(*arguments)]
    return [(threads // 32 * 32 + lane + row, column + col) for row, col in found]


def _loaded(state: Words, shape: str, r: int, lane: int, column: int, split: int, packed: bool) -> Words:
    words = [state[0][place] for place in _places(shape, r, lane, column, split, packed)]
    return (words[1] & 0xFFFF) << 16 | words[0] & 0xFFFF if packed else words[0]


@PACKED
@pytest.mark.parametrize("shape", fragments.SHAPES)
def test_stores(shape: str, packed: bool) -> None:
    state, source = _words(2, (1, LANES, COLUMNS)), _words(3, (fragments.MAX_REGISTERS + 16, THREADS))
    expected, halves = state.copy(), np.zeros(state.shape, bool)
    code = ["mul.wide.u32 %wide, %thread, 4; add.u64 %out, %out, %wide;"]
    for number, (count, lane, column, split) in enumerate(_accesses(shape, packed)):
        address, registers, immediate = _operands(shape, count, lane, column, split)
        for r in range(_registers(shape, count)):
            code += [f"ld.global.b32 %u{r}, [%out + {4 * THREADS * (r + number)}];"]
        unpack = ".unpack::16b" if packed else ""
        code += [address, f"tcgen05.st.sync.aligned.{shape}.x{count}{unpack}.b32 [%x]{immediate}, {registers};"]
        code += ["tcgen05.wait::st.sync.aligned;"]
        for r in range(_registers(shape, count)):
            words = source[r + number]
            values = (words & 0xFFFF, words >> 16) if packed else (words,)
            for value, place in zip(values, _places(shape, r, lane, column, split, packed), strict=True):
                expected[0][place], halves[0][place] = value, packed
    after = run(Probe(every="\n".join(code), lanes=state, output=source.reshape(-1)))
    # What .unpack::16b puts into the upper halves, the ISA does not say.
    np.testing.assert_array_equal(np.where(halves, after & 0xFFFF, after), expected)


def test_second_half_of_a_load_may_lie_anywhere() -> None:
    state = _words(4, (1, LANES, COLUMNS))
    output = np.zeros(THREADS, np.uint32)
    code = "mul.wide.u32 %wide, %thread, 4; add.u64 %out, %out, %wide; add.u32 %x, %mine, 3;"
    code += "tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%u0}, [%x], 77; tcgen05.wait::ld.sync.aligned;"
    run(Probe(every=code + "st.global.b32 [%out], %u0;", lanes=state, output=output))
    expected = [state[0, t // 32 * 32 + t % 16, 3 + (77 if t % 32 >= 16 else 0)] for t in range(THREADS)]
    np.testing.assert_array_equal(output, expected)


# Swizzling mode, leading and stride in bytes, bytes by which the start address is further on along K.
SOURCES = (
    ("none", 128, 256, 0),
    ("none", 4096, 128, 0),
    ("32b", 16, 256, 0),
    ("64b", 16, 512, 32),
    ("128b", 16, 2048, 96),
)


@pytest.mark.parametrize("ctas", [1, 2])
@pytest.mark.parametrize("form", ["", "b4x16_p64"])
@pytest.mark.parametrize("shape", copies.SOURCES)
def test_copies(shape: str, form: str, ctas: int) -> None:
    rows, width = copies.SOURCES[shape]
    images = [bytearray(SHARED_STEP * len(SOURCES)) for _ in range(ctas)]
    state = _words(5, (ctas, LANES, 64))
    expected, code, numbers = state.copy(), [], []
    for number, (mode, leading, stride, advance) in enumerate(SOURCES):
        numbers.append(descriptors.shared(SHARED_STEP * number + advance, leading, stride, mode))
        first = 8 * number + 3
        suffix = f".b8x16.{form}" if form else ""
        code += [f"add.u32 %x, %t, {first}; tcgen05.cp.cta_group::{ctas}.{shape}{suffix} [%x], %d{number};"]
        for cta, image in enumerate(images):
            source = np.random.default_rng(number + 10 * cta).bytes(rows * width)
            row, offset = np.divmod(np.arange(rows * width), width)
            places = swizzled(k_major(row, offset + advance, mode, leading, stride), mode)
            np.frombuffer(image, np.uint8)[SHARED_STEP * number + places] = np.frombuffer(source, np.uint8)
            for row in range(rows):
                words = np.frombuffer(_copied(source[row * width : (row + 1) * width], form), np.uint32)
                for lane in copies.lanes(shape, row):
                    expected[cta, lane, first : first + len(words)] = words
    after = run(Probe("\n".join(code), shared=[bytes(i) for i in images], lanes=state, descriptors=numbers, columns=64))
    np.testing.assert_array_equal(after, expected)


def _copied(row: bytes, form: str) -> bytes:
    if not form:
        return row
    chunks = (row[at : at + 16] for at in range(0, len(row), 16))
    return b"".join(bytes(e << containers.E2M1_SHIFT for e in copies.elements(chunk, form)) for chunk in chunks)


def test_every_source_fits_its_swizzle() -> None:
    for mode, _, _, advance in SOURCES:
        assert mode == "none" or advance + 32 <= SWIZZLE_BITS[mode][0]


@pytest.mark.parametrize("lane", [5, 31])
def test_a_copy_of_four_rows_may_begin_at_any_lane(lane: int) -> None:
    state, image = _words(6, (1, LANES, 32)), bytes(range(256))
    expected = state.copy()
    for row in range(4):
        expected[0, lane + copies.lanes("4x256b", row)[0], :8] = np.frombuffer(
            image[16 * row : 16 * row + 16] + image[128 + 16 * row : 144 + 16 * row], np.uint32
        )
    code = f"add.u32 %x, %t, {lane << 16}; tcgen05.cp.cta_group::1.4x256b [%x], %d0;"
    numbers = (descriptors.shared(0, 128, 256, "none"),)
    after = run(Probe(code, shared=(image,), lanes=state, descriptors=numbers, columns=32))
    np.testing.assert_array_equal(after, expected)


@pytest.mark.parametrize("ctas", [1, 2])
def test_shifts(ctas: int) -> None:
    state = _words(7, (ctas, LANES, 32))
    expected = state.copy()
    part = slice(copies.SHIFT_LANES * 2, copies.SHIFT_LANES * 3)
    columns = slice(5, 5 + copies.SHIFT_COLUMNS)
    from_lanes = [copies.shifted(lane) for lane in range(part.start, part.stop)]
    expected[:, part, columns] = state[:, from_lanes, columns]
    code = f"add.u32 %x, %t, {part.start << 16 | 5}; tcgen05.shift.cta_group::{ctas}.down [%x];"
    after = run(Probe(code, shared=(b"",) * ctas, lanes=state, columns=32))
    np.testing.assert_array_equal(after, expected)
