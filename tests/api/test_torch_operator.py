"""What PyTorch is told of a kernel that becomes an operator. PyTorch is played; tests/device asks the real one."""

import sys
import types
from contextlib import nullcontext

import numpy as np
import pytest
from played_driver import Tensor

import ptxdsl
from ptxdsl import LaunchError

TEXT = """
struct Pair:
    var a: Int32
    var b: Int32


@kernel(threads=32)
def affine(
    src: Pointer[Float32, ImmutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], sums: Pointer[Float32, MutAnyOrigin],
    n: Int32, factor: Float32, negate: Bool,
):
    var i = Int32(global_idx.x)
    if i < n:
        var product = src[unsafe_offset=i] * factor
        res[unsafe_offset=i] = -product if negate else product
        sums[unsafe_offset=i] += product


@kernel(threads=32)
def pairs(p: Pair):
    pass


@kernel
def grows[n: Int](p: Pointer[Int32, MutAnyOrigin]):
    p[] = Int32(n)
"""


class Operator:
    """What torch.library.custom_op gives."""

    def __init__(self, name, function, *, mutates_args, schema):
        self.name, self.changed, self.schema = name, mutates_args, schema
        self.call = function

    def register_fake(self, function):
        self.fake = function


@pytest.fixture(autouse=True)
def torch(monkeypatch):
    module = types.ModuleType("torch")
    module.library = types.SimpleNamespace(custom_op=Operator)
    module.__version__, module.Tensor = "2.3.1", Tensor
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


@pytest.fixture(scope="module")
def module():
    return ptxdsl.loads(TEXT, "affine.pdsl")


def test_mutable_pointers_are_declared_as_changed(module):
    operator = ptxdsl.torch.custom_op("mine::affine", module.affine, grid=4)
    assert (operator.name, operator.changed) == ("mine::affine", ["res", "sums"])
    assert operator.schema == (
        "(Tensor src, Tensor(a1!) res, Tensor(a2!) sums, SymInt n, float factor, bool negate) -> ()"
    )
    assert operator.fake(None, None, None, 3, 1.0, False) is None


def test_an_operator_launches_and_changes_its_arguments(module):
    operator = ptxdsl.torch.custom_op("mine::affine", module.affine, grid=lambda n: -(-n // 32), target="sim")
    src = np.arange(100, dtype=np.float32)
    res, sums = np.zeros(100, np.float32), np.ones(100, np.float32)
    assert operator.call(src, res, sums, 100, 3.0, True) is None
    assert np.array_equal(res, -3 * src) and np.array_equal(sums, 3 * src + 1)


def test_outputs_are_made_and_returned(module):
    operator = ptxdsl.torch.custom_op(
        "mine::affine", module.affine, grid=lambda res: -(-res.size // 32), target="sim",
        outputs={"sums": lambda n: np.zeros(n, np.float32), "res": lambda src: np.empty_like(src)},
    )  # fmt: skip
    assert operator.changed == []
    assert operator.schema == "(Tensor src, SymInt n, float factor, bool negate) -> (Tensor, Tensor)"
    src = np.arange(40, dtype=np.float32)
    res, sums = operator.call(src, 40, 2.0, False)
    assert np.array_equal(res, 2 * src) and np.array_equal(sums, 2 * src)
    fakes = operator.fake(src, 40, 2.0, False)
    assert [fake.shape for fake in fakes] == [(40,), (40,)]
    one = ptxdsl.torch.custom_op(
        "mine::affine", module.affine, grid=2, target="sim", outputs={"res": lambda src: np.empty_like(src)}
    )
    assert one.schema == "(Tensor src, Tensor(a1!) sums, SymInt n, float factor, bool negate) -> Tensor"
    assert np.array_equal(one.call(src, sums, 40, 5.0, False), 5 * src) and np.array_equal(sums, 7 * src)


def test_the_rest_of_a_launch(module, monkeypatch):
    """Shapes and keywords arrive, whether they are values or functions of the call."""
    found = []
    monkeypatch.setattr(
        ptxdsl.api.kernel.Launcher, "__call__", lambda self, *given, **options: found.append((self.block, options))
    )
    ptxdsl.torch.custom_op(
        "mine::affine", module.affine, grid=1, block=lambda n: (n, 2), smem=lambda n: 4 * n, cluster=(2, 1),
        cooperative=True, pdl=True,
    ).call(None, None, None, 8, 1.0, False)  # fmt: skip
    assert found == [
        ((8, 2, 1), {"smem": 32, "cluster": (2, 1), "cooperative": True, "pdl": True, "target": None})
    ]  # fmt: skip


def test_it_runs_on_the_device_of_its_tensors(module, torch, monkeypatch):
    devices = []
    torch.cuda = types.SimpleNamespace(device=lambda device: devices.append(device.index) or nullcontext())
    monkeypatch.setattr(ptxdsl.api.kernel.Launcher, "__call__", lambda self, *given, **options: None)
    call = ptxdsl.torch.custom_op("mine::affine", module.affine, grid=1).call
    for arrays in ([Tensor(0x40, index=1)] * 3, [Tensor(0x40, device="cpu"), Tensor(0x40), Tensor(0x40)]):
        call(*arrays, 8, 1.0, False)
    call(*[Tensor(0x40, device="cpu")] * 3, 8, 1.0, False)
    assert devices == [1, 0]


@pytest.mark.parametrize(
    ("name", "kernel", "options", "words"),
    [
        ("affine", "affine", {}, "'affine' is not an operator's name"),
        ("a::b::c", "affine", {}, "'a::b::c' is not an operator's name"),
        (None, "affine", {}, "None is not an operator's name"),
        ("m::f", "pairs", {}, "parameter 'p' is Pair, which operators of PyTorch do not take"),
        ("m::f", "affine", {"outputs": {"src": len}}, "has no mutable pointer 'src' to be an output"),
        ("m::f", "affine", {"outputs": {"res": 3}}, r"outputs\['res'\] is int, not a function"),
        ("m::f", "affine", {"outputs": {"res": lambda res: res}}, r"for outputs\['res'\] has a parameter 'res'"),
        ("m::f", "affine", {"grid": lambda m: m}, "the function for grid has a parameter 'm'"),
        ("m::f", "affine", {"block": dict.get}, "the function for block has a parameter"),
    ],
)
def test_what_cannot_be_an_operator(module, name, kernel, options, words):
    with pytest.raises(LaunchError, match=words) as caught:
        ptxdsl.torch.custom_op(name, module[kernel], **{"grid": 1, **options})
    assert caught.value.diagnostics[0].code == "E0931"


def test_a_block_is_needed(module):
    with pytest.raises(LaunchError, match="kernel 'grows_1' needs a block size") as caught:
        ptxdsl.torch.custom_op("m::f", module.grows.specialize(n=1), grid=1)
    assert caught.value.diagnostics[0].code == "E0908"


def test_what_is_no_kernel(module):
    with pytest.raises(TypeError, match="an operator is made of a kernel, not of Module"):
        ptxdsl.torch.custom_op("m::f", module, grid=1)
    with pytest.raises(ptxdsl.CompileError, match="n"):
        ptxdsl.torch.custom_op("m::f", module.grows, grid=1)


def test_without_pytorch(module, torch, monkeypatch):
    del torch.library.custom_op
    with pytest.raises(LaunchError, match=r"PyTorch 2\.3\.1 has no torch\.library\.custom_op") as caught:
        ptxdsl.torch.custom_op("m::f", module.affine, grid=1)
    assert caught.value.diagnostics[0].code == "E0930"
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(LaunchError, match="PyTorch cannot be imported") as caught:
        ptxdsl.torch.custom_op("m::f", module.affine, grid=1)
    assert caught.value.diagnostics[0].code == "E0930"


def test_pytorch_is_not_hidden():
    names = {}
    exec("from ptxdsl import *", names)
    assert "torch" not in names
