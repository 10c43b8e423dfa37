"""--arg NAME=SPEC: what is read from the text, and what each mistake is told."""

import numpy as np
import pytest

from ptxdsl.diagnostics import CompileError
from ptxdsl.run.formats import to_values
from ptxdsl.run.generate import generate
from ptxdsl.run.specification import ArraySpec, BytesSpec, ScalarSpec, arguments


def spec(text):
    return arguments([f"a={text}"])["a"]


def array(text):
    return generate("a", spec(text))[0]


@pytest.mark.parametrize(
    ("text", "value", "dtype"),
    [
        ("300", 300, None), ("-7", -7, None), ("0x10", 16, None), ("-0x10", -16, None), ("1.5", 1.5, None),
        ("1e3", 1000.0, None), (".5", 0.5, None), ("inf", float("inf"), None), ("True", True, None),
        ("f32:2", 2, "float32"), ("i64:-1", -1, "int64"), ("bool:False", False, "bool"), ("uint8:3", 3, "uint8"),
    ],
)  # fmt: skip
def test_scalars(text, value, dtype):
    assert spec(text) == ScalarSpec(value, dtype)
    assert type(spec(text).value) is type(value)


def test_bytes_and_arrays():
    assert spec("bytes:00ff 10") == BytesSpec(b"\x00\xff\x10")
    assert spec("randn:bf16:4x8:seed=3:box=2x8") == ArraySpec(
        "randn", "bfloat16", (4, 8), None, {"seed": "3", "box": "2x8"}, "randn:bf16:4x8:seed=3:box=2x8"
    )
    assert spec("dir/a.npy").path == "dir/a.npy"


def test_generators_give_what_their_names_say():
    assert array("zeros:i32:3").tolist() == [0, 0, 0]
    assert array("ones:f16:2").dtype == np.float16
    assert array("full:u8:2:value=0xff").tolist() == [255, 255]
    assert array("full:f32:2:value=-0.5").tolist() == [-0.5, -0.5]
    assert array("arange:i16:2x3:start=5:step=-2").tolist() == [[5, 3, 1], [-1, -3, -5]]
    assert np.isnan(array("nan:f64:4")).all()
    assert array("zeros:f32:0x4").shape == (0, 4)
    assert set(array("randint:i8:1000:low=-2:high=2").tolist()) == {-2, -1, 0, 1}
    assert array("randint:u64:1000").max() > 2**63
    assert array("randint:bool:64").dtype == np.bool_
    uniform = array("rand:f32:1000:low=2:high=3")
    assert 2 <= uniform.min() < uniform.max() < 3
    assert 0.4 < array("randn:f32:1000:scale=0.5").std() < 0.6


def test_the_same_text_gives_the_same_bytes_and_another_seed_others():
    assert np.array_equal(array("randn:f32:64:seed=3"), array("randn:f32:64:seed=3"))
    assert not np.array_equal(array("randn:f32:64:seed=3"), array("randn:f32:64:seed=4"))


def test_types_that_numpy_lacks_are_their_bits():
    assert array("arange:bf16:3").tolist() == [0, 0x3F80, 0x4000]
    assert array("full:e4m3:2:value=-1.5").tolist() == [0xBC, 0xBC]
    assert to_values(array("arange:e5m2:4"), "float8_e5m2").tolist() == [0, 1, 2, 3]
    assert to_values(array("nan:bf16:1"), "bfloat16").dtype == np.float32


def test_files(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6, dtype=">i4").reshape(2, 3).T)
    found, dtype = generate("a", spec(f"{tmp_path / 'a.npy'}"))
    assert dtype == "int32"
    assert found.dtype == np.dtype("int32")
    assert found.flags.c_contiguous
    assert found.tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize(
    ("entry", "code", "words"),
    [
        ("a", "E1013", "expected NAME=SPEC"),
        ("=3", "E1013", "expected NAME=SPEC"),
        ("a=", "E1013", "'' is neither a number nor an array"),
        ("a=three", "E1013", "'three' is neither a number nor an array"),
        ("a=f32:x", "E1013", "'x' is not a number"),
        ("a=bytes:0g", "E1013", "is not a sequence of hexadecimal bytes"),
        ("a=randn", "E1013", "'' is not an element type"),
        ("a=randn:f31:4", "E1013", "'f31' is not an element type"),
        ("a=randn:f32", "E1013", "'' is not a shape"),
        ("a=randn:f32:4x", "E1013", "'4x' is not a shape"),
        ("a=randn:f32:-4", "E1013", "'-4' is not a shape"),
        ("a=randn:f32:4:sed=3", "E1013", "'sed=3' is not an option here"),
        ("a=randn:f32:4:seed=x", "E1013", "'seed' is a number, not 'x'"),
        ("a=randn:f32:4:seed=1:seed=2", "E1013", "'seed' is given twice"),
        ("a=٣", "E1013", "is neither a number nor an array"),
    ],
)
def test_mistakes(entry, code, words):
    with pytest.raises(CompileError) as caught:
        arguments([entry])
    (problem,) = caught.value.diagnostics
    assert problem.code == code
    assert words in problem.message


def test_a_name_given_twice_and_all_mistakes_at_once():
    with pytest.raises(CompileError) as caught:
        arguments(["a=1", "b=x", "a=2", "c"])
    assert [d.code for d in caught.value.diagnostics] == ["E1013", "E1014", "E1013"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("missing.npy", "cannot read 'missing.npy': No such file"),
        ("randn:i32:4", "randn makes no int32"),
        ("nan:u8:4", "nan makes no uint8"),
        ("randint:i32:4:low=3:high=3", "low=3 is not below high=3"),
        ("zeros:f64:1000000x1000000", "is larger than 64 GiB"),
        ("full:u8:2:value=300", "full:u8:2:value=300 cannot be made"),
        ("full:i8:2:value=nan", "cannot be made"),
        ("rand:f32:2:low=nan", "cannot be made"),
        ("randint:i32:2:low=-1e30", "cannot be made"),
        ("randn:f32:2:seed=-1", "cannot be made"),
        ("randn:f32:2:seed=nan", "cannot be made"),
    ],
)
def test_what_cannot_be_made(text, words):
    with pytest.raises(CompileError) as caught:
        array(text)
    (problem,) = caught.value.diagnostics
    assert problem.code == "E1015"
    assert words in problem.message


def test_files_that_are_no_arrays(tmp_path):
    (tmp_path / "text.npy").write_text("hello")
    np.save(tmp_path / "objects.npy", np.array([{}]))
    np.save(tmp_path / "complex.npy", np.zeros(2, complex))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "complex.npy").read_bytes()[:-3])
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (%s,), }\n"
    for name, shape in (("huge", b"9" * 14), ("open", b"(" * 5000)):
        length = len(header % shape).to_bytes(2, "little")
        (tmp_path / f"{name}.npy").write_bytes(b"\x93NUMPY\x01\0" + length + header % shape)
    for name in ("text", "objects", "complex", "cut", "huge", "open"):
        with pytest.raises(CompileError) as caught:
            array(str(tmp_path / f"{name}.npy"))
        assert caught.value.diagnostics[0].code == "E1015"
