"""Which compiler makes machine code for a launch, and what is said where none takes the kernel."""

import pytest
from played_driver import FakeDriver

import ptxdsl
from ptxdsl.api.module import Module
from ptxdsl.backend import cubin_cache
from ptxdsl.backend.assemble import Assembled
from ptxdsl.cuda.errors import DriverError
from ptxdsl.diagnostics import CompileError, Diagnostic
from ptxdsl.source import Source

TEXT = "@kernel\ndef k(p: Pointer[Int32, MutAnyOrigin]):\n    p[] = 1\n"
CUBIN = b"\x7fELF machine code"


class Choosy(FakeDriver):
    """Refuses images that begin so, with this result."""

    refused: tuple[bytes, str] = (b"", "")

    def load(self, image, name):
        if self.refused[0] and image.startswith(self.refused[0]):
            raise DriverError("cuLibraryLoadData", self.refused[1], "line 9; error: no")
        return super().load(image, name)


@pytest.fixture
def driver():
    return Choosy()


@pytest.fixture
def launch(driver, tensor):
    return lambda: Module(Source("k.pdsl", TEXT), driver=driver).k[1, 32](tensor(0x40, "int32"))


@pytest.fixture(params=["", "ptxas"])
def with_ptxas(request, monkeypatch):
    monkeypatch.setenv("PTXDSL_ASSEMBLER", request.param)
    monkeypatch.setattr(cubin_cache, "assembled", lambda compiled: Assembled(CUBIN, (), {}))
    return request.param


def without(monkeypatch, code, message="no ptxas"):
    def assembled(compiled):
        raise CompileError(Diagnostic(code, message))

    monkeypatch.setattr(cubin_cache, "assembled", assembled)


def kinds(driver):
    return ["cubin" if image == CUBIN else "ptx" for image in driver.images]


def test_machine_code_of_ptxas_is_loaded_where_it_is_installed(driver, launch, with_ptxas):
    launch()
    assert kinds(driver) == ["cubin"]


def test_the_driver_is_asked_alone_where_that_is_wanted(driver, launch, monkeypatch):
    monkeypatch.setattr(cubin_cache, "assembled", None)
    monkeypatch.setenv("PTXDSL_ASSEMBLER", "driver")
    launch()
    assert kinds(driver) == ["ptx"] and driver.images[0].endswith(b"}\n\0")


@pytest.mark.parametrize("code", ["E0803", "E0802", "E0804"])
def test_without_a_ptxas_that_does_the_driver_compiles(driver, launch, monkeypatch, code):
    monkeypatch.setenv("PTXDSL_ASSEMBLER", "")
    without(monkeypatch, code)
    launch()
    assert kinds(driver) == ["ptx"]
    monkeypatch.setenv("PTXDSL_ASSEMBLER", "ptxas")
    with pytest.raises(ptxdsl.CompileError, match=code):
        launch()


def test_machine_code_of_a_newer_ptxas_falls_back_on_ptx(driver, launch, with_ptxas):
    driver.refused = (CUBIN, "CUDA_ERROR_NO_BINARY_FOR_GPU")
    if with_ptxas == "ptxas":
        with pytest.raises(ptxdsl.LaunchError, match="E0911"):
            launch()
    else:
        launch()
        assert kinds(driver) == ["ptx"]


def test_other_failures_are_not_hidden(driver, launch, monkeypatch, with_ptxas):
    driver.refused = (CUBIN, "CUDA_ERROR_OUT_OF_MEMORY")
    with pytest.raises(ptxdsl.LaunchError, match="the device has not enough free memory"):
        launch()
    assert driver.images == []


def test_where_neither_takes_it_ptxas_says_why(driver, launch, monkeypatch):
    monkeypatch.setenv("PTXDSL_ASSEMBLER", "")
    without(monkeypatch, "E0802", "ptxas: too much shared data")
    driver.refused = (b"//", "CUDA_ERROR_INVALID_PTX")
    with pytest.raises(ptxdsl.CompileError, match="too much shared data"):
        launch()
    without(monkeypatch, "E0803")
    with pytest.raises(ptxdsl.LaunchError) as caught:
        launch()
    assert [d.code for d in caught.value.diagnostics] == ["E0911", "E0911"]


def test_a_failed_load_is_tried_again_by_the_next_launch(driver, launch, monkeypatch, tensor):
    driver.fails["load"] = ("CUDA_ERROR_OUT_OF_MEMORY", "")
    kernel = Module(Source("k.pdsl", TEXT), driver=driver).k
    with pytest.raises(ptxdsl.LaunchError, match="E0911"):
        kernel[1, 32](tensor(0x40, "int32"))
    del driver.fails["load"]
    kernel[1, 32](tensor(0x40, "int32"))
    assert len(driver.launches) == 1


def test_an_unknown_assembler(launch, monkeypatch):
    monkeypatch.setenv("PTXDSL_ASSEMBLER", "nvcc")
    with pytest.raises(ptxdsl.LaunchError, match="PTXDSL_ASSEMBLER is 'nvcc'") as caught:
        launch()
    assert caught.value.diagnostics[0].code == "E0919"


def test_a_version_that_was_asked_for_is_too_new(driver, tensor):
    from ptxdsl.options import Options

    driver.refused = (b"//", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION")
    module = Module(Source("k.pdsl", TEXT), Options(ptx_version=(8, 8)), driver)
    with pytest.raises(ptxdsl.LaunchError) as caught:
        module.k[1, 32](tensor(0x40, "int32"))
    assert caught.value.diagnostics[0].help == (
        "the driver knows CUDA 13.0, the kernel is PTX 8.8: leave ptx_version out"
    )
