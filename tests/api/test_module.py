"""load, loads, specialise and compile; what is compiled when, and what a missing GPU or package says."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import ptxdsl
from ptxdsl import CompileError, LaunchError
from ptxdsl.api.constant_texts import constants
from ptxdsl.api.module import Module
from ptxdsl.api.program import device_arch
from ptxdsl.cuda import driver as cuda_driver
from ptxdsl.cuda import library
from ptxdsl.cuda.driver_interface import Device
from ptxdsl.source import Source

TEXT = """
@kernel
def scale[factor: Int = 2](src: Pointer[Float32, MutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], n: Int32):
    var i = Int32(block_idx.x) * Int32(block_dim.x) + Int32(thread_idx.x)
    if i < n:
        res[unsafe_offset=i] = src[unsafe_offset=i] * Float32(factor)


def helper(x: Int32) -> Int32:
    return x + 1
"""


@pytest.fixture
def module(driver):
    return Module(Source("scale.pdsl", TEXT), driver=driver)


def test_kernels_are_attributes_and_items(module):
    assert module.kernels == ("scale",)
    assert module.scale is module["scale"]
    assert "scale" in dir(module)
    assert hasattr(module, "scale") and not hasattr(module, "nothing")
    assert repr(module) == "<ptxdsl module 'scale.pdsl': scale>"
    assert repr(module.scale.specialize(factor=3)) == "<ptxdsl kernel 'scale[factor=3]' of 'scale.pdsl'>"


def test_an_unknown_kernel_names_the_nearest(module):
    with pytest.raises(LaunchError, match=r"'scale\.pdsl' has no kernel 'scal'") as caught:
        module["scal"]
    assert caught.value.diagnostics[0].code == "E0913"
    assert caught.value.diagnostics[0].help == "did you mean 'scale'?"
    with pytest.raises(AttributeError, match="did you mean 'scale'"):
        module.scal


def test_a_path_where_a_text_is_wanted(tmp_path):
    for path in "scale.pdsl", str(tmp_path / "other.mojo"):
        with pytest.raises(CompileError) as caught:
            ptxdsl.loads(path)
        (problem,) = caught.value.diagnostics
        assert problem.code == "E1001" and problem.message.endswith(f"not the name of its file, '{path}'")
        assert problem.help == "ptxdsl.load(path) reads a file"
    with pytest.raises(TypeError, match=r"is a str, not PosixPath: ptxdsl\.load\(path\) reads a file"):
        ptxdsl.loads(tmp_path)
    assert ptxdsl.loads("# k.pdsl\ndef f():\n    pass\n").kernels == ("f",)


def test_a_text_where_a_path_is_wanted():
    for text in (TEXT, "def f(): pass  # " + "x" * 300):
        with pytest.raises(CompileError) as caught:
            ptxdsl.compile(text)
        (problem,) = caught.value.diagnostics
        assert problem.code == "E1001" and len(problem.message) < 100
        assert problem.help == "if this is the text of a program, use ptxdsl.loads(text)"


def test_a_long_path_is_a_path(tmp_path):
    folder = tmp_path / ("a" * 150) / ("b" * 150)
    folder.mkdir(parents=True)
    (folder / "scale.pdsl").write_text(TEXT)
    assert ptxdsl.load(folder / "scale.pdsl").kernels == ("scale",)


def test_what_is_no_text_and_no_path():
    with pytest.raises(TypeError, match=r"the text of a program is a str, not NoneType$"):
        ptxdsl.loads(None)
    with pytest.raises(TypeError, match=r"a str, not bytes: decode it first$"):
        ptxdsl.loads(TEXT.encode())
    for call in (ptxdsl.load, ptxdsl.compile):
        with pytest.raises(TypeError, match=r"the path of a program is a str or a path, not int$"):
            call(3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ptxdsl.loads(TEXT, name=3), "the name of a text is a str, not int"),
        (lambda: ptxdsl.loads(TEXT, wait="prob"), "wait is 'try' or 'probe', not 'prob'"),
        (lambda: ptxdsl.loads(TEXT, check=True), "check is 'off', 'warn' or 'error', not True"),
        (
            lambda: ptxdsl.loads(TEXT, ptx_version="8.6"),
            r"ptx_version is two numbers such as \(8, 6\), or None; not '8.6'",
        ),
        (lambda: ptxdsl.loads(TEXT, ptx_version=(8,)), "ptx_version is two numbers"),
        (lambda: ptxdsl.loads(TEXT, lineinfo="no"), "lineinfo is True or False, not 'no'"),
        (lambda: ptxdsl.compile(ptxdsl.loads(TEXT), arch=90), "the name of a target is a str, not int"),
        (lambda: ptxdsl.compile(ptxdsl.loads(TEXT), arch=None), "the name of a target is a str, not NoneType"),
        (lambda: ptxdsl.compile(ptxdsl.loads(TEXT), kernel=3), "the name of a kernel is a str, not int"),
        (lambda: ptxdsl.compile(ptxdsl.loads(TEXT), constants=3), "constants are a dict of names and values, not 3"),
    ],
)
def test_options_that_are_none(call, words):
    with pytest.raises(TypeError, match=words):
        call()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.dtype("float16"), "DType.float16"),
        (np.int8, "DType.int8"),
        (np.bool_, "DType.bool"),
        (np.float64(0.5), "0.5"),
    ],
)
def test_values_of_numpy_as_expressions(value, text):
    assert constants({"x": value}) == (("x", text),)


@pytest.mark.parametrize(
    "value",
    [float("nan"), pytest.param(10**5000, id="huge"), np.zeros(3), np.dtype(">f4"), np.float32("inf"), float, None],
)
def test_values_that_no_expression_stands_for(value):
    with pytest.raises(LaunchError, match="parameter 'x' cannot be given as ") as caught:
        constants({"x": value})
    assert caught.value.diagnostics[0].code == "E0913"


def test_a_kernel_is_named_by_a_text(module):
    with pytest.raises(TypeError, match="a kernel's name is a str, not int"):
        module[0]


def test_specialising_twice_gives_one_kernel(module):
    assert module.scale.specialize(factor=3) is module.scale.specialize(factor="3")
    assert module.scale.specialize(factor=3) is not module.scale


def test_values_of_comptime_parameters():
    from ptxdsl.api.constant_texts import constants as _constants

    given = {"a": 3, "b": True, "c": 0.5, "d": "DType.bfloat16", "e": np.dtype("float32"), "f": np.int64(4)}
    assert _constants(given) == (
        ("a", "3"), ("b", "True"), ("c", "0.5"), ("d", "DType.bfloat16"), ("e", "DType.float32"), ("f", "4"),
    )  # fmt: skip
    with pytest.raises(LaunchError, match="parameter 'a' cannot be given as list"):
        _constants({"a": [1]})


def test_a_launch_compiles_once_a_device(module, driver, tensor):
    for _ in range(3):
        module.scale[4, 256](tensor(0x100), tensor(0x200), 1000)
    assert (len(driver.images), len(driver.launches)) == (1, 3)
    driver.device, driver.devices = replace(driver.device, ordinal=1), 2
    module.scale[4, 256](tensor(0x100, index=1), tensor(0x200, index=1), 1000)
    assert len(driver.images) == 2
    assert b".target sm_90a" in driver.images[0]
    module.scale.specialize(factor=5)[4, 256](tensor(0x100, index=1), tensor(0x200, index=1), 1000)
    assert len(driver.images) == 3


def test_wrong_arguments_are_shown_in_the_text(module, tensor):
    with pytest.raises(LaunchError) as caught:
        module.scale[4, 256](tensor(0x100), None, 1000)
    text = str(caught.value)
    assert "argument 'res' of kernel 'scale_2' is a Pointer[Float32]; got None" in text
    assert "scale.pdsl:3" in text and "res: Pointer[Float32, MutAnyOrigin]" in text


def test_launch_shapes_are_asked_for(module):
    for call in (lambda: module.scale(1), lambda: module.scale[4], lambda: module.scale[4, 256, 1]):
        with pytest.raises(LaunchError) as caught:
            call()
        assert caught.value.diagnostics[0].code == "E0908"


def test_mistakes_in_the_text_are_compile_errors(driver, tensor):
    broken = Module(Source("b.pdsl", "@kernel\ndef k(n: Int32):\n    var x = nothing\n"), driver=driver)
    with pytest.raises(CompileError, match="nothing"):
        broken.k[1, 1](1)
    assert driver.images == []
    with pytest.raises(CompileError):
        ptxdsl.loads("def k(:\n").kernels


def test_a_mistaken_parameter_is_a_compile_error(module, driver):
    with pytest.raises(CompileError, match="factr"):
        module.scale.specialize(factr=1)[1, 1](None, None, 1)


def test_load_reads_a_file_and_compile_gives_its_ptx(tmp_path):
    path = tmp_path / "scale.pdsl"
    path.write_text(TEXT)
    made = ptxdsl.compile(path, arch="sm_80", constants={"factor": 7})
    assert ".target sm_80" in made.ptx
    (signature,) = made.signatures.values()
    assert [p.name for p in signature.params] == ["src", "res", "n"]
    assert ptxdsl.load(path).scale.specialize(factor=7).compile("sm_80").ptx == made.ptx
    with pytest.raises(CompileError, match=r"none\.pdsl"):
        ptxdsl.load(tmp_path / "none.pdsl")


@pytest.mark.parametrize(
    ("capability", "arch"),
    [((8, 0), "sm_80"), ((8, 6), "sm_86"), ((8, 7), "sm_86"), ((8, 9), "sm_89"), ((9, 0), "sm_90a"),
     ((10, 0), "sm_100a"), ((10, 3), "sm_103a"), ((11, 0), "sm_110a"), ((12, 0), "sm_120a"), ((12, 1), "sm_121a")],
)  # fmt: skip
def test_the_target_of_a_device(capability, arch):
    assert device_arch(Device(0, "card", capability)) == arch


def test_devices_that_no_target_fits():
    with pytest.raises(LaunchError) as caught:
        device_arch(Device(0, "old card", (7, 5)))
    assert caught.value.diagnostics[0].code == "E0902"


def test_importing_loads_neither_compiler_nor_cuda():
    code = "import sys, ptxdsl; print(sorted({'lark', 'llvmlite', 'numpy', 'cuda', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_driver_is_what_a_launch_needs(monkeypatch, tensor):
    monkeypatch.setattr(cuda_driver, "_driver", None)
    monkeypatch.setattr(library, "NAMES", {sys.platform: "libnone.so.1"})
    module = ptxdsl.loads(TEXT)
    assert "scale" in module.scale.compile().ptx
    with pytest.raises(LaunchError, match=r"no CUDA driver is installed: libnone\.so\.1") as caught:
        module.scale[1, 1](tensor(0x100), tensor(0x200), 1)
    assert caught.value.diagnostics[0].code == "E0902"


def test_a_driver_that_is_too_old(monkeypatch):
    monkeypatch.setattr(cuda_driver, "_driver", None)
    monkeypatch.setattr(library, "NAMES", {sys.platform: None})  # the process itself, which has none of the functions
    with pytest.raises(LaunchError, match="the CUDA driver is too old") as caught:
        cuda_driver.current_driver()
    assert caught.value.diagnostics[0].help == "ptxdsl needs a driver for CUDA 12.0 or later"


def test_a_kernel_that_is_imported_is_one_of_its_own_file(tmp_path):
    text = "@kernel(threads=1)\ndef one(p: Pointer[Int32, MutAnyOrigin]):\n    p[] = 1\n"
    (tmp_path / "ones.pdsl").write_text(text)
    (tmp_path / "main.pdsl").write_text(f"from .ones import one\n{text.replace('one', 'own')}")
    module = ptxdsl.load(tmp_path / "main.pdsl")
    assert module.kernels == ("own",)
    with pytest.raises(AttributeError, match=r"no kernel 'one'; it is imported from '\.ones': load the file"):
        module.one
    with pytest.raises(ptxdsl.LaunchError, match=r"E0913(.|\n)*it is imported from '\.ones'"):
        module["one"]
