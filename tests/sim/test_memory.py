"""Memory as handlers and agents see it: addresses, windows, bounds, and words for what went wrong."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ptxdsl.ptx.module import Symbol, Variable
from ptxdsl.sim import layout
from ptxdsl.sim.layout import LOCAL_WINDOW, PARAMETERS, SHARED_START, SHARED_WINDOW, VARIABLES
from ptxdsl.sim.machine.cta import Cluster, Cta, CtaStorage
from ptxdsl.sim.machine.memory import AccessFault, Memory, access_bytes
from ptxdsl.sim.program.symbols import GRANULE, lay_out


def variable(name: str, space: str, size: int | None, align: int = 4, **more: object) -> Variable:
    return Variable(name, space, "b8", align, size, None if size is None else (size,), **more)  # type: ignore[arg-type]


# Where variables lie


def test_variables_get_aligned_places() -> None:
    symbols = lay_out(
        [
            variable("a", "shared", 5),
            variable("b", "shared", 16, 128),
            variable("dynamic", "shared", None, 1024),
            variable("other", "shared", None, 16),
            variable("g", "global", GRANULE + 1),
            variable("c", "const", 4),
            variable("l", "local", 3, 1),
            variable("m", "local", 8, 8),
        ],
        [variable("p", "param", 4), variable("q", "param", 8, 8), variable("map", "param", 128, 64)],
    )
    places = {name: place.address for name, place in symbols.places.items()}
    assert (places["a"], places["b"]) == (SHARED_START, SHARED_START + 128)
    # all dynamic ones start at the same place, aligned for the most demanding
    assert places["dynamic"] == places["other"] == symbols.dynamic_start == SHARED_START + 1024
    assert symbols.static_shared == 144
    # an empty granule lies behind every global
    assert (places["g"], places["c"]) == (VARIABLES, VARIABLES + 3 * GRANULE)
    assert symbols.arrays_start == VARIABLES + 5 * GRANULE
    assert (places["l"], places["m"], symbols.local_bytes) == (0, 8, 16)
    assert [places[p] - PARAMETERS for p in ("p", "q", "map")] == [0, 8, 64]
    assert symbols.parameter_bytes == 192


def test_initialisers_and_addresses_in_them() -> None:
    table = variable("table", "global", 24, 8, initial=bytes(24), relocations=((8, 8, Symbol("text", 3)),))
    text = variable("text", "const", 6, 1, initial=b"hello\0")
    memory = Memory(lay_out([table, text], []))
    places = memory.symbols.places
    found = memory.view(None, "global", places["table"].address + 8, 8, write=False)  # type: ignore[arg-type]
    assert int.from_bytes(found.tobytes(), "little") == places["text"].address + 3
    assert memory.text_at(None, places["text"].address + 1) == b"ello"  # type: ignore[arg-type]


# Arrays


def machine() -> Memory:
    return Memory(lay_out([variable("s", "shared", 64)], []))


def test_an_array_is_used_in_place_and_has_one_address() -> None:
    memory = machine()
    array = np.arange(10, dtype=np.uint32)
    address = memory.lend(array, "argument 0")
    assert address % GRANULE == 0 and memory.lend(array, "argument 1") == address
    view = memory.view(None, "global", address + 8, 4, write=True)  # type: ignore[arg-type]
    view[:] = (1, 0, 0, 0)
    assert array[2] == 1


def test_arrays_with_gaps_are_lent_from_first_to_last_element() -> None:
    memory = machine()
    whole = np.zeros((4, 8), np.uint32)
    address = memory.lend(whole[:, :3], "argument 0")
    memory.view(None, "global", address + 3 * 32 + 8, 4, write=True)[:] = 1  # type: ignore[arg-type]
    assert whole[3, 2] == 0x01010101 and whole.sum() == 0x01010101
    with pytest.raises(AccessFault):
        memory.view(None, "global", address + 3 * 32 + 12, 4, write=True)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="backwards"):
        memory.lend(whole[::-1], "argument 1")


def test_empty_arrays_have_an_address_and_no_memory() -> None:
    memory = machine()
    address = memory.lend(np.zeros(0, np.uint32), "argument 0")
    with pytest.raises(AccessFault, match=r"4 bytes at address .* lie just past the end of argument 0 \(0 bytes"):
        memory.view(None, "global", address, 4, write=False)  # type: ignore[arg-type]


def test_compiled_code_finds_regions_by_granules() -> None:
    """The tables that layout describes lead from an address to the array's bytes."""
    memory = machine()
    array = np.arange(3 * GRANULE, dtype=np.uint8)
    address = memory.lend(array, "argument 0")
    launch = memory.launch[0]
    granules = (ctypes.c_uint16 * int(launch["granule_count"])).from_address(int(launch["granules"]))
    number = granules[(address + 2 * GRANULE + 5 - layout.GLOBAL_BASE) >> layout.GRANULE_SHIFT]
    table = (ctypes.c_uint64 * (4 * int(launch["region_count"]))).from_address(int(launch["regions"]))
    start, end, host, writable = table[4 * number : 4 * number + 4]
    assert (start, end, host, writable) == (address, address + len(array), array.ctypes.data, 1)
    assert granules[(end - layout.GLOBAL_BASE) >> layout.GRANULE_SHIFT] == 0


def test_many_regions_are_found_again_after_the_tables_grow() -> None:
    memory = machine()
    arrays = [np.full(100, i, np.uint8) for i in range(200)]
    addresses = [memory.lend(array, str(i)) for i, array in enumerate(arrays)]
    for i in (0, 99, 199):
        assert memory.view(None, "global", addresses[i] + 7, 1, write=False)[0] == i  # type: ignore[arg-type]


def test_memory_that_is_given_up_is_gone() -> None:
    memory = machine()
    address = memory.allocate(64, "heap memory")
    memory.view(None, "global", address, 64, write=True)[:] = 3  # type: ignore[arg-type]
    before = memory.allocated
    memory.release(address)
    assert memory.allocated == before - 64
    with pytest.raises(AccessFault):
        memory.view(None, "global", address, 1, write=False)  # type: ignore[arg-type]
    with pytest.raises(AccessFault, match="malloc did not give"):
        memory.release(address)


# Shared and local memory


def cluster_of_two() -> tuple[Memory, list[Cta]]:
    memory = Memory(lay_out([variable("s", "shared", 64), variable("l", "local", 16, 8)], []))
    storages = [CtaStorage((64, 1, 1), memory.symbols.dynamic_start, 16, 0, 0) for _ in range(2)]
    return memory, Cluster(0, (2, 1, 1), (2, 1, 1), storages, 1).ctas


def test_shared_addresses_carry_the_rank() -> None:
    memory, (first, second) = cluster_of_two()
    address = 1 << 24 | SHARED_START
    memory.view(second, "shared", address, 4, write=True)[:] = 7
    assert memory.view(first, "shared::cluster", address, 4, write=False).tolist() == [7] * 4
    assert memory.view(first, "generic", SHARED_WINDOW + address, 4, write=False).tolist() == [7] * 4
    assert second.window[SHARED_START] == 7 and first.window[SHARED_START] != 7
    with pytest.raises(AccessFault, match=r"lies in the CTA of rank 1, but the access is \.shared::cta in rank 0"):
        memory.view(first, "shared::cta", address, 4, write=False)
    with pytest.raises(AccessFault, match="the cluster has no CTA of rank 2"):
        memory.view(first, "shared::cluster", 2 << 24 | SHARED_START, 4, write=False)


@pytest.mark.parametrize("address", [0, SHARED_START - 4, SHARED_START + 61, SHARED_START + 64, (1 << 24) - 1])
def test_shared_bounds(address: int) -> None:
    memory, (first, _) = cluster_of_two()
    with pytest.raises(AccessFault, match=r"shared memory (starts|ends) at"):
        memory.view(first, "shared", address, 4, write=False)


def test_local_memory_is_a_threads_own() -> None:
    memory, (first, _) = cluster_of_two()
    memory.view(first, "generic", LOCAL_WINDOW + 8, 4, write=True, thread=33)[:] = 5
    assert memory.view(first, "local", 8, 4, write=False, thread=33).tolist() == [5] * 4
    assert memory.view(first, "local", 8, 4, write=False, thread=34).tolist() != [5] * 4
    with pytest.raises(AccessFault, match="a thread has 16 bytes of local memory"):
        memory.view(first, "local", 16, 1, write=False, thread=0)
    with pytest.raises(AccessFault, match="cannot be used by this instruction"):
        memory.view(first, "generic", LOCAL_WINDOW, 1, write=False)


def test_uninitialised_shared_memory_is_no_zero() -> None:
    _, (first, _) = cluster_of_two()
    assert first.window[SHARED_START:].min() == 0xFF  # NaN in every floating-point format


# Words


@pytest.mark.parametrize(
    ("offset", "size", "words"),
    [
        (38, 4, "4 bytes at address {at} run over the end of argument 'a' (40 bytes, starts at {start})"),
        (40, 4, "4 bytes at address {at} lie just past the end of argument 'a' (40 bytes, starts at {start})"),
        (48, 1, "1 byte at address {at} lies 8 bytes past the end of argument 'a' (40 bytes, starts at {start})"),
        (-4, 4, "4 bytes at address {at} lie 4 bytes before argument 'a' (starts at {start})"),
        (1 << 30, 4, "4 bytes at address {at}: nothing lies there"),
    ],
)
def test_a_bad_address_is_told_by_the_nearest_memory(offset: int, size: int, words: str) -> None:
    memory = machine()
    memory.allocate(2 * GRANULE, "other")
    address = memory.lend(np.zeros(10, np.uint32), "argument 'a'")
    with pytest.raises(AccessFault) as caught:
        memory.view(None, "global", address + offset, size, write=False)  # type: ignore[arg-type]
    assert caught.value.text == words.format(at=hex(address + offset), start=hex(address))


def test_shared_addresses_by_their_variable() -> None:
    memory = Memory(lay_out([variable("bars", "shared", 48), variable("ring", "shared", None, 16)], []))
    assert memory.shared.place(SHARED_START + 8) == "bars+8"
    assert memory.shared.place(SHARED_START) == "bars"
    assert memory.shared.place(3 << 24 | SHARED_START + 100) == "ring+52"
    assert memory.shared.place(8) == "0x8"
    words = Memory(
        lay_out([Variable("full", "shared", "b64", 8, 24, (3,)), Variable("one", "shared", "b64", 8, 8)], [])
    )
    at = [words.shared.place(SHARED_START + offset) for offset in (0, 8, 12, 24)]
    assert at == ["full[0]", "full[1]", "full[1]+4", "one"], "of arrays of words the elements"


@pytest.mark.parametrize(
    ("opcode", "size"),
    [("ld.global.u8", 1), ("ld.v4.f32", 16), ("atom.global.add.f16x2", 4), ("st.b128", 16), ("ld.shared.v2.b64", 16)],
)
def test_bytes_of_an_access(opcode: str, size: int) -> None:
    assert access_bytes(opcode.split(".")) == size
