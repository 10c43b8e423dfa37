"""Which text runs after a file has changed; kernels that go to another process."""

import multiprocessing
import pickle

import numpy as np
import pytest

import ptxdsl
from ptxdsl.api.module import Module
from ptxdsl.options import Options
from ptxdsl.source import Source

TEXT = "@kernel\ndef k[n: Int = 1](p: Pointer[Int32, MutAnyOrigin]):\n    p[] = {} * Int32(n)\n"


def value(kernel):
    out = np.zeros(1, np.int32)
    kernel[1, 1](out, target="sim")
    return int(out[0])


def test_a_module_runs_the_text_that_was_loaded(tmp_path):
    path = tmp_path / "k.pdsl"
    path.write_text(TEXT.format(1))
    module = ptxdsl.load(path)
    first = module.k
    path.write_text(TEXT.format(2))
    assert value(module.k.specialize(n=10)) == 10  # compiled after the change, of the text before
    assert module.reload() is True
    assert (value(module.k), value(first)) == (2, 1)
    assert module.k is not first and module.reload() is False


def test_an_import_is_read_when_a_kernel_is_compiled(tmp_path):
    (tmp_path / "k.pdsl").write_text("from steps import step\n\n" + TEXT.format("step()"))
    steps = tmp_path / "steps.pdsl"
    steps.write_text("def step() -> Int32:\n    return 1\n")
    module = ptxdsl.load(tmp_path / "k.pdsl")
    steps.write_text("def step() -> Int32:\n    return 2\n")
    assert value(module.k) == 2
    steps.write_text("def step() -> Int32:\n    return 3\n")
    assert value(module.k) == 2  # compiled before
    assert module.reload() is False and value(module.k) == 3


def test_a_reload_that_fails_changes_nothing(tmp_path):
    path = tmp_path / "k.pdsl"
    path.write_text(TEXT.format(1))
    module = ptxdsl.load(path)
    path.unlink()
    with pytest.raises(ptxdsl.CompileError, match="E1001"):
        module.reload()
    assert value(module.k) == 1


def test_a_text_has_nothing_to_reload():
    with pytest.raises(ptxdsl.LaunchError) as caught:
        ptxdsl.loads(TEXT.format(1), "k.pdsl").reload()
    assert caught.value.diagnostics[0].code == "E0921"


def test_options_are_kept(tmp_path, driver):
    path = tmp_path / "k.pdsl"
    path.write_text(TEXT.format(1))
    module = ptxdsl.load(path, contract=False)
    module.reload()
    assert "--no-contract" in module.k.compile().ptx


def test_a_kernel_goes_to_another_process_as_its_text():
    kernel = Module(Source("k.pdsl", TEXT.format(4)), Options(lineinfo=True)).k.specialize(n=3)
    again = pickle.loads(pickle.dumps(kernel))
    assert again.compile().ptx == kernel.compile().ptx and again is not kernel
    assert repr(again) == repr(kernel)


def test_a_spawned_process_runs_it():
    kernel = ptxdsl.loads(TEXT.format(5), "k.pdsl").k.specialize(n=2)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_ptx, (kernel,)) == kernel.compile().ptx


def _ptx(kernel):
    return kernel.compile().ptx
