"""Tiles: which bytes a tensor copy moves where, against an H200 (data/tensor_maps.json) and the ISA's tables."""

import base64
import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from ptxdsl.sim.barriers.mbarrier_word import pack
from ptxdsl.sim.copies import tile
from ptxdsl.sim.copies.reductions import STORAGE, reduce
from ptxdsl.sim.copies.swizzle import SWIZZLES, swizzled
from ptxdsl.sim.copies.tensor_description import Description
from ptxdsl.sim.host import Fault

CARD = json.loads((Path(__file__).parent / "data" / "tensor_maps.json").read_text())
CARD_ASYNC = json.loads((Path(__file__).parent / "data" / "async.json").read_text())
BASE = 0x7000_0000_0000
TUPLES = ("dims", "strides", "box", "element_strides")
# The bits of f32 values that "floats" arrays repeat; dump_tensor_maps.py has them too.
FLOATS = (
    "0 80000000 1 80000001 7fffff 800000 3f800001 3f801000 3f801001 3f803000 3f800fff bf801fff 7f7fffff 7f800000 "
    "ff800000 7fc00000 7f800001 ffffffff"
)


def description(case):
    said = {name: tuple(case[name]) if name in TUPLES else case[name] for name in Description.__match_args__}
    return Description(**said | {"address": BASE + case["address"]})


def unpacked(text):
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8)


def global_memory(kind):
    if kind == "floats":
        return np.resize(np.array([int(word, 16) for word in FLOATS.split()], np.uint32), 8192).view(np.uint8).copy()
    if kind == "index":
        return np.arange(16384, dtype=np.uint16).view(np.uint8).copy()
    return np.full(32768, 0xEE, np.uint8)


def viewer(memory):
    def view(address, size):
        assert 0 <= address - BASE <= len(memory) - size
        return memory[address - BASE : address - BASE + size]

    return view


def done(kind):
    return [case for case in CARD[kind] if case["result"] == "CUDA_SUCCESS"]


def refused(kind):
    return [case for case in CARD[kind] if case["result"].endswith("ILLEGAL_INSTRUCTION")]


def test_the_card_has_done_enough():
    assert len(done("loads")) > 140 and len(done("stores")) > 25 and refused("loads") and refused("stores")


def test_loads_are_the_cards():
    """Every byte of shared memory, and what the mbarrier was told."""
    for case in done("loads"):
        said, start = description(case["map"]), case["offset"]
        shape = tile.tile_of(said)
        tile.check_start(said, case["at"])
        shared = np.full(16384, 0xEE, np.uint8)
        rows = tile.load(said, case["at"], viewer(global_memory(case["data"])))
        tile.put(said, shared[start : start + shape.size], start, rows)
        assert (shared == unpacked(case["shared"])).all(), case["map"]
        assert f"{pack(0, 1, (1 << 19) - shape.transferred, 1):016x}" == case["barrier"], case["map"]


def test_stores_are_the_cards():
    for case in done("stores"):
        said, start = description(case["map"]), case["offset"]
        shape = tile.tile_of(said)
        tile.check_start(said, case["at"], write=True)
        shared = np.arange(8192, dtype=np.uint16).view(np.uint8)
        memory = global_memory("index" if case["reduce"] else "")
        rows = tile.take(said, shared[start : start + shape.size], start)
        tile.store(said, case["at"], rows, viewer(memory), reducer(case))
        assert (memory == unpacked(case["global"])).all(), (case["map"], case["reduce"])


def reducer(case):
    type = case["map"]["data_type"]
    if not case["reduce"]:
        return None
    return lambda old, new: reduce(case["reduce"], type, old.view(STORAGE[type]), new.view(STORAGE[type])).view(
        np.uint8
    )


@pytest.mark.parametrize("kind", ["loads", "stores"])
def test_what_the_card_calls_illegal_is_a_fault(kind):
    for case in refused(kind):
        with pytest.raises(Fault) as problem:
            tile.check_start(description(case["map"]), case["at"], write=kind == "stores")
        assert problem.value.code == "E1155"


@pytest.mark.parametrize("case", CARD_ASYNC["reductions"], ids=lambda case: case["operation"])
def test_reductions_are_the_cards(case):
    operation, *_, type = case["operation"].split(".")
    before, source, after = (
        np.frombuffer(bytes.fromhex(case[name]), STORAGE[type]) for name in ("before", "source", "after")
    )
    found = reduce(operation, type, before, source)
    wrong = np.flatnonzero(found != after)
    assert not len(wrong), [f"{before[i]:#x} {source[i]:#x} -> {found[i]:#x}, card {after[i]:#x}" for i in wrong[:5]]


# The ISA's tables of swizzles: of each line of 128 bytes the 16-byte chunks in the order in which they lie there.
TABLES = {
    "32B": "01234567 10325476",
    "64B": "01234567 10325476 23016745 32107654",
    "128B": "01234567 10325476 23016745 32107654 45670123 54761032 67452301 76543210",
    "128B_atom_32B": "01234567 23016745 45670123 67452301",
    "128B_atom_64B": "01234567 45670123",
    "96B": "01234567 10325476",
}


@pytest.mark.parametrize("name", TABLES)
def test_a_swizzle_is_its_table(name):
    lines = TABLES[name].split()
    for line in range(16):
        expected = [int(chunk) for chunk in lines[line % len(lines)]]
        addresses = line * 128 + 16 * np.arange(8)
        assert (swizzled(addresses, SWIZZLES[name]) % 128 // 16).tolist() == expected  # each is its own inverse
        assert (swizzled(addresses, SWIZZLES[name]) // 128 == line).all()


def test_the_flip_exchanges_8_byte_halves_in_every_second_line():
    plain, flip = SWIZZLES["128B_atom_32B"], SWIZZLES["128B_atom_32B_flip_8B"]
    addresses = np.arange(0, 1024, 8)
    expected = swizzled(addresses, plain) ^ np.where(addresses // 128 % 2, 8, 0)
    assert (swizzled(addresses, flip) == expected).all()


# Types of sm_100, that no card of ours has shown: by the ISA's figures of sub-byte types.


def test_four_bit_elements_get_gaps():
    said = Description("b4x16_p64", BASE, (256, 3), (128,), (128, 2), (1, 1))
    memory = np.arange(384, dtype=np.uint8)
    shared = np.full(2 * 128, 0xEE, np.uint8)
    tile.put(said, shared, 0, tile.load(said, [128, 1], viewer(memory)))
    groups = shared.reshape(2, 8, 16)
    assert (groups[:, :, 8:] == 0xEE).all()
    assert (groups[0, :, :8].ravel() == np.arange(192, 256, dtype=np.uint8)).all()
    assert tile.tile_of(said).transferred == 256


def test_six_bit_elements_get_gaps_and_lose_them():
    said = Description("b6x16_p32", BASE, (128, 2), (96,), (128, 2), (1, 1), swizzle="128B")
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 64, (2, 128))
    bits = (codes[:, :, None] >> np.arange(6) & 1).reshape(2, -1)
    memory = np.packbits(bits, axis=1, bitorder="little").ravel()
    shared = np.zeros(256, np.uint8)
    tile.put(said, shared, 0, tile.load(said, [0, 0], viewer(memory)))
    second = swizzled(128 + 16 * np.arange(8), SWIZZLES["128B"])
    assert (shared[second[3] : second[3] + 12] == memory[96 + 36 : 96 + 48]).all()
    # on the way out each byte holds one element in its low bits
    swizzled_bytes = np.zeros(256, np.uint8)
    tile.put(
        Description("u8", BASE, (128, 2), (128,), (128, 2), (1, 1), swizzle="128B"),
        swizzled_bytes,
        0,
        codes.astype(np.uint8),
    )
    out = np.zeros(192, np.uint8)
    tile.store(said, [0, 0], tile.take(said, swizzled_bytes, 0), viewer(out))
    assert (out == memory).all()
