"""``ptxdsl build`` and ``ptxdsl.build``: which files, what is in them, and what cannot be."""

from __future__ import annotations

import io
import os
import struct

import pytest

import ptxdsl
from ptxdsl import cli
from ptxdsl.backend import assemble
from ptxdsl.diagnostics import error

TEXT = """
@fieldwise_init
struct load(TrivialRegisterPassable):
    pass

@fieldwise_init
struct Inner(TrivialRegisterPassable):
    var int: Int8
    var p: Pointer[Float64, ImmutAnyOrigin]

@fieldwise_init
struct Outer[T: DType](TrivialRegisterPassable):
    var inner: Inner
    var value: Scalar[Self.T]

@kernel
def scale[factor: Int](a: Pointer[Float32, MutAnyOrigin], n: Int32):
    if Int32(thread_idx.x) < n:
        a[unsafe_offset=thread_idx.x] *= Float32(factor)

@kernel(threads=(8, 4))
def words(
    template: Pointer[Inner, MutAnyOrigin], module: UInt8, shape: Outer[DType.float16], again: Outer[DType.float16],
    other: Outer[DType.int], nothing: load, a_b: Float64, linux: Pointer[BFloat16, ImmutAnyOrigin],
):
    pass
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "kernels.pdsl"
    path.write_text(TEXT)
    return path


def run(*words):
    return cli.main([str(word) for word in words])


def test_the_command_and_python_write_the_same(file, tmp_path, capsys, ptxas):
    words = ["-D", "factor=3", "--kernel", "scale", "--format", "c", "--format", "ptx", "--format", "cubin"]
    assert run("build", file, *words, "-o", tmp_path / "one" / "deep") == 0
    names = ["scale_3.h", "scale_3.c", "scale_3.ptx", "scale_3.cubin"]
    assert capsys.readouterr().out.splitlines() == [str(tmp_path / "one" / "deep" / name) for name in names]
    kernel = ptxdsl.load(file).scale.specialize(factor=3)
    paths = ptxdsl.build(kernel, tmp_path / "two", formats=("c", "ptx", "cubin"))
    assert [os.path.basename(path) for path in paths] == names
    for name in names:
        assert (tmp_path / "one" / "deep" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    compiled = kernel.compile()
    assert (tmp_path / "two" / "scale_3.ptx").read_text() == compiled.ptx
    assert (tmp_path / "two" / "scale_3.cubin").read_bytes() == compiled.cubin()


def test_several_targets(file, tmp_path, ptxas):
    formats = ("ptx", "cubin", "fatbin")
    ptxdsl.build(file, tmp_path / "out", kernel="words", arch=("sm_80", "sm_100a", "sm_80", "sm_100f"), formats=formats)
    found = sorted(os.listdir(tmp_path / "out"))
    archs = ("sm_100a", "sm_100f", "sm_80")
    assert found == ["words.fatbin", *(f"words.{arch}.{form}" for arch in archs for form in ("cubin", "ptx"))]
    assert ".target sm_100f" in (tmp_path / "out" / "words.sm_100f.ptx").read_text()
    assert images((tmp_path / "out" / "words.fatbin").read_bytes()) == [
        (kind, sm) for sm in (100, 100, 80) for kind in ("elf", "ptx")
    ]


def images(data):
    """Kind and target of each image of a fat binary: a header, then each image behind a header of its own."""
    magic, _, header, size = struct.unpack_from("<IHHQ", data)
    assert magic == 0xBA55ED50 and header + size == len(data)
    found, place = [], header
    while place < len(data):
        kind, _, length, payload = struct.unpack_from("<HHIQ", data, place)
        found.append(({1: "ptx", 2: "elf"}[kind], struct.unpack_from("<I", data, place + 28)[0]))
        place += length + payload
    return found


def test_the_best_image_for_a_device_comes_first(file, tmp_path, ptxas):
    ptxdsl.build(file, tmp_path, kernel="words", arch=("sm_90", "sm_80", "sm_90a"))
    table = (tmp_path / "words.c").read_text().partition("static const image images[] = {\n")[2].partition("};")[0]
    order = [line.split('"')[1] for line in table.splitlines()]
    assert order == 2 * ["sm_90a", "sm_90", "sm_80"]  # machine code, then PTX


def test_without_ptxas_the_ptx_is_embedded(file, tmp_path, monkeypatch):
    def nothing(name):
        raise error("E0803", f"{name} is not installed", None)

    monkeypatch.setattr(assemble, "find_tool", nothing)
    monkeypatch.setenv("PTXDSL_NO_CACHE", "1")
    ptxdsl.build(file, tmp_path, kernel="words")
    text = (tmp_path / "words.c").read_text()
    ptx = ptxdsl.load(file).words.compile().ptx.encode() + b"\0"
    array = text.partition("image_0 = {{")[2].partition("}};")[0]
    assert bytes(int(number) for number in array.split(",") if number.strip()) == ptx
    assert "image_1" not in text
    with pytest.raises(ptxdsl.CompileError, match="E0803"):
        ptxdsl.build(file, tmp_path, kernel="words", formats="cubin")


def test_names_and_types(file, tmp_path, c_compiler):
    """Names that C has for itself, structs within structs, each written once, one without fields that is called as our
    function is, and small floats."""
    ptxdsl.build(file, tmp_path, kernel="words")
    header = (tmp_path / "words.h").read_text()
    for struct_text in (
        "typedef struct words_Inner {\n    int8_t int_;\n    CUdeviceptr p; /* const double * */\n} words_Inner;",
        "    words_Inner inner;\n    uint16_t value; /* the bits of a float16 */\n}",
        "    words_Inner inner;\n    int64_t value;\n}",
        "    char unused;\n} words_load_;",
    ):
        assert header.count(struct_text) == 1
    prototype = header.partition("CUresult words_launch(\n")[2].partition("ptxdsl_error")[0]
    names = [line.partition(",")[0].split()[-1].lstrip("*") for line in prototype.splitlines()[2:] if line.strip()]
    assert names == ["template_", "module_", "shape_", "again", "other", "nothing", "a_b", "linux_"]
    assert "CUdeviceptr template_, /* Inner *, 16 bytes each */" in prototype
    assert "CUdeviceptr linux_, /* const bfloat16 * */" in prototype
    c_compiler("gcc", "-std=gnu99", "-c", tmp_path / "words.c", "-o", tmp_path / "words.o")
    c_compiler("g++", "-x", "c++", "-std=c++17", "-c", tmp_path / "words.c", "-o", tmp_path / "words.o")


def test_several_kernels_are_called_as_their_file(file, tmp_path, c_compiler):
    two = tmp_path / "2 x.pdsl"
    two.write_text("@kernel\ndef a():\n    pass\n\n@kernel\ndef b():\n    pass\n")
    paths = ptxdsl.build(two, tmp_path)
    assert [os.path.basename(path) for path in paths] == ["2_x.h", "2_x.c"]
    header = (tmp_path / "2_x.h").read_text()
    assert "k2_x_a_launch(" in header and "k2_x_b_launch(" in header and "k2_x_load(" in header
    c_compiler("gcc", "-std=c99", "-c", tmp_path / "2_x.c", "-o", tmp_path / "x.o")


def test_headers_go_together(file, tmp_path, c_compiler):
    for kernel in ("words", "scale"):
        ptxdsl.build(file, tmp_path, kernel=kernel, constants={"factor": 2} if kernel == "scale" else {})
    (tmp_path / "both.cpp").write_text(
        '#include "words.h"\n#include "scale_2.h"\n'
        "CUresult f(const scale_2_module &m, const ptxdsl_shape &s) { return scale_2_launch(&m, &s, 0, 1, nullptr); }\n"
    )
    c_compiler("g++", "-std=c++17", "-c", tmp_path / "both.cpp", "-o", tmp_path / "both.o")


def test_standard_input(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO(b"@kernel\ndef a():\n    pass\n\n@kernel\ndef b():\n    pass"))
    )
    assert run("build", "-", "-o", tmp_path, "--format", "ptx") == 0
    assert capsys.readouterr().out == f"{tmp_path}/stdin.ptx\n"


def test_what_was_there_is_replaced(file, tmp_path):
    (tmp_path / "words.ptx").write_text("old")
    ptxdsl.build(file, tmp_path, kernel="words", formats="ptx")
    assert ".entry words" in (tmp_path / "words.ptx").read_text()
    assert sorted(os.listdir(tmp_path)) == ["kernels.pdsl", "words.ptx"]


@pytest.mark.parametrize("name", ["f.c", "f.h"])
def test_the_source_is_never_replaced(name, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "@kernel\ndef f(n: Int32):\n    pass\n"
    (tmp_path / name).write_text(text)
    assert run("build", name) == 1
    assert capsys.readouterr().err.startswith(f"error[E1012]: the output './{name}' is the file that is read\n")
    assert (tmp_path / name).read_text() == text and os.listdir(tmp_path) == [name]


def codes(call):
    with pytest.raises(ptxdsl.CompileError) as caught:
        call()
    return [d.code for d in caught.value.diagnostics], caught.value.diagnostics[0].message


def test_folders_that_are_none(file, tmp_path):
    (tmp_path / "taken").write_text("")
    for folder in ("taken", "taken/below"):
        found, message = codes(lambda folder=folder: ptxdsl.build(file, tmp_path / folder, kernel="words"))
        assert found == ["E1007"] and str(tmp_path / folder) in message
    (tmp_path / "words.h").mkdir()
    assert codes(lambda: ptxdsl.build(file, tmp_path, kernel="words"))[0] == ["E1007"]
    assert not (tmp_path / "words.c").exists()
    assert (tmp_path / "taken").read_text() == ""


def test_nothing_is_written_where_something_is_wrong(file, tmp_path):
    assert codes(lambda: ptxdsl.build(file, tmp_path / "x", kernel="scale"))[0] == ["E0408"]
    assert codes(lambda: ptxdsl.build(file, tmp_path / "x", kernel="words", arch=("sm_90a", "sm_1")))[0] == ["E0702"]
    assert codes(lambda: ptxdsl.build(file, tmp_path / "x", kernel="words", formats=["c", "zip"])) == (
        ["E1025"], "there is no format 'zip'",
    )  # fmt: skip
    assert codes(lambda: ptxdsl.build(file, tmp_path / "x", kernel="words", arch=[]))[0] == ["E1025"]
    assert not (tmp_path / "x").exists()


def test_foreign_code_has_no_parameters_to_be_known(tmp_path, capsys):
    (tmp_path / "k.ptx").write_text(".version 8.0\n.target sm_90\n.address_size 64\n")
    assert run("build", tmp_path / "k.ptx", "-o", tmp_path) == 1
    assert "error[E1025]" in capsys.readouterr().err


def test_no_fatbinary(file, tmp_path, monkeypatch, ptxas):
    real = assemble.find_tool

    def without(name):
        return real("nowhere" if name == "fatbinary" else name)

    monkeypatch.setattr("ptxdsl.aot.fatbin.find_tool", without)
    found, message = codes(lambda: ptxdsl.build(file, tmp_path, kernel="words", formats="fatbin"))
    assert found == ["E1023"] and "fatbinary, which is not installed" in message


def test_what_fatbinary_says(file, tmp_path, monkeypatch, ptxas):
    tool = tmp_path / "fatbinary"
    tool.write_text("#!/bin/sh\necho 'fatbinary fatal   : no such sm' >&2\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setattr("ptxdsl.aot.fatbin.find_tool", lambda name: str(tool))
    assert codes(lambda: ptxdsl.build(file, tmp_path, kernel="words", formats="fatbin")) == (
        ["E1024"], "fatbinary: fatbinary fatal   : no such sm",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"arch": 90}, "arch is a name or several, not 90"),
        ({"formats": ["c", 3]}, r"formats is a name or several, not \['c', 3\]"),
        ({"formats": None}, "formats is a name or several, not None"),
        ({"folder": 3}, "the folder is a str or a path, not int"),
    ],
)
def test_arguments_of_other_types(given, words, tmp_path):
    module = ptxdsl.loads("@kernel\ndef k():\n    pass\n")
    with pytest.raises(TypeError, match=words):
        ptxdsl.build(module, **{"folder": tmp_path, **given})
