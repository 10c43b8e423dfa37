"""Tensor maps: the 128 bytes and the rules against the driver's, as an H200 gave them (data/tensor_maps.json)."""

import json
from pathlib import Path

import numpy as np
import pytest

from ptxdsl.diagnostics import LaunchError
from ptxdsl.sim.copies.tensor_description import Description, broken_rules
from ptxdsl.sim.copies.tensor_map import TensorMap
from ptxdsl.sim.copies.tensor_map_bytes import Words, decode, encode

CARD = json.loads((Path(__file__).parent / "data" / "tensor_maps.json").read_text())
FIELDS = Description.__match_args__
TUPLES = ("dims", "strides", "box", "element_strides")


def description(case, address=None):
    said = {name: tuple(case[name]) if name in TUPLES else case[name] for name in FIELDS}
    return Description(**said | ({} if address is None else {"address": address}))


TAKEN = [case for case in CARD["encodings"] if case["bytes"]]
REFUSED = [case for case in CARD["encodings"] if not case["bytes"]]


def test_the_card_took_and_refused_enough():
    assert len(TAKEN) > 90 and len(REFUSED) > 50


def test_encoding_is_the_drivers_to_the_bit():
    for case in TAKEN:
        assert encode(description(case)).hex() == case["bytes"], case


def test_decoding_gives_back_what_was_encoded():
    for case in TAKEN:
        assert decode(bytes.fromhex(case["bytes"])) == description(case), case


def test_what_the_driver_takes_breaks_no_rule():
    for case in TAKEN:
        # the driver does not look at this one, though the documentation has it
        broken = [rule for rule in broken_rules(description(case)) if "interleave 32B needs swizzle 32B" not in rule]
        assert not broken, case


def test_what_the_driver_refuses_breaks_a_rule():
    for case in REFUSED:
        on_this_card = case["data_type"].startswith(("b4", "b6")) or "atom" in case["swizzle"]  # sm_100 has them
        assert on_this_card or list(broken_rules(description(case))), case


ARRAY = np.zeros((48, 64), np.uint16)
RULES = {
    "rank": ({"array": np.zeros((2,) * 6, np.uint16), "box": (2,) * 6}, "1 to 5 dimensions"),
    "box sizes": ({"box": (8,)}, "2 dimensions has 2 box sizes, not 1"),
    "address": ({"address": 0x7000_0000_0008}, "not a multiple of 16"),
    "stride": ({"array": np.zeros((48, 68), np.uint16)[:, :64]}, "stride 0 is 136 bytes"),
    "box": ({"box": (300, 8)}, "300 elements in dimension 1"),
    "empty box": ({"box": (0, 8)}, "0 elements in dimension 1"),
    "row": ({"box": (8, 12)}, "24 bytes; it must be a multiple of 16"),
    "swizzle": ({"box": (8, 64), "swizzle": "64B"}, "128 bytes, more than the 64 of swizzle 64B"),
    "interleave": ({"interleave": "16B"}, "at least 3 dimensions"),
    "element stride": ({"element_strides": (9, 1)}, "element stride of dimension 1 is 9"),
    "nan": ({"fill": "nan"}, "cannot be filled with NaN"),
    "contiguous": ({"array": np.zeros((48, 128), np.uint16)[:, ::2]}, "must be contiguous"),
    "shared memory": ({"array": np.zeros((256, 256, 256), np.uint8), "box": (8, 256, 256)}, "shared memory"),
    "names": ({"swizzle": "256B"}, "is not one of 'none', '32B', '64B', '128B'"),
    "dtype": ({"array": np.zeros((4, 8), np.complex64)}, "no element type"),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_a_map_that_breaks_a_rule_is_not_made(name):
    changes, words = RULES[name]
    arguments = {"array": ARRAY, "box": (8, 32)} | changes
    address = arguments.pop("address", 0x7000_0000_0000)
    with pytest.raises(LaunchError) as problem:
        TensorMap(**arguments).encode(address)
    assert problem.value.diagnostics[0].code == "E0920"
    assert words in str(problem.value)


def test_an_arrays_map_has_its_shape_from_the_inside_out():
    said = decode(TensorMap(np.zeros((3, 5, 64), np.float32), (1, 4, 32), swizzle="128B").encode(0x7000_0000_0100))
    assert said == Description(
        "f32", 0x7000_0000_0100, (64, 5, 3), (256, 1280), (32, 4, 1), (1, 1, 1), "none", "128B", "none", "zero"
    )


def test_types_that_arrays_do_not_tell():
    assert TensorMap(ARRAY, (8, 32), data_type="bf16").description.data_type == "bf16"
    assert TensorMap(np.zeros((4, 8), np.int8), (4, 16), shape=(4, 16), strides=(16, 1)).description.data_type == "u8"
    packed = TensorMap(np.zeros((4, 128), np.uint8), (4, 128), data_type="b4x16", shape=(4, 256), strides=(128, 1))
    assert packed.description.box == (128, 4)


@pytest.mark.parametrize("junk", [b"\xff" * 128, bytes(8) + b"\x70" + bytes(119)])
def test_bytes_that_are_no_map(junk):
    with pytest.raises(ValueError):
        decode(junk)


def test_replaced_fields():
    """``tensormap.replace`` of every field: what decoding then says. Its element types have numbers of their own."""
    made = Words(encode(description(TAKEN[0])))
    for field, ordinal, value in (
        ("global_address", 0, 0x7000_1234_5670),
        ("rank", 0, 2),
        ("box_dim", 0, 16),
        ("box_dim", 2, 3),
        ("global_dim", 1, 1 << 32),
        ("global_dim", 2, 9),
        ("global_stride", 1, 0xA5_5AA5_5AA0),
        ("element_stride", 2, 4),
        ("elemtype", 0, 10),
        ("swizzle_mode", 0, 1),
        ("interleave_layout", 0, 1),
        ("fill_mode", 0, 1),
    ):
        made.replace(field, ordinal, value)
    assert decode(made.words.tobytes()) == Description(
        "bf16", 0x7000_1234_5670, (64, 1 << 32, 9), (128, 0xA5_5AA5_5AA0), (16, 8, 3), (1, 1, 4), "16B", "32B", "none",
        "nan",
    )  # fmt: skip
