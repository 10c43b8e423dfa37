"""Operators of PyTorch: on CPU tensors through the simulator, on CUDA tensors on the card."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import ptxdsl

ROOT = Path(__file__).parents[2]

TEXT = """
@kernel(threads=64)
def scale(src: Pointer[Float32, ImmutAnyOrigin], res: Pointer[Float32, MutAnyOrigin], n: Int32, factor: Float32):
    var i = Int32(global_idx.x)
    if i < n:
        res[unsafe_offset=i] = src[unsafe_offset=i] * factor
"""


@pytest.fixture(scope="module")
def torch():
    with warnings.catch_warnings():  # its deprecations are not ours
        warnings.simplefilter("ignore")
        return pytest.importorskip("torch", minversion="2.4", reason="PyTorch is not installed")


@pytest.fixture(params=[pytest.param("cuda", marks=pytest.mark.device), "cpu"])
def make(request, torch):
    """make(*shape): random numbers where the operators run."""
    if request.param == "cuda":
        request.getfixturevalue("gpu")
    make = lambda *shape: torch.randn(*shape, device=request.param)  # noqa: E731
    make.target = "sim" if request.param == "cpu" else "gpu"
    return make


@pytest.fixture
def scale(torch, make):
    """(src, n, factor) -> res"""
    return ptxdsl.torch.custom_op(
        "tests::scale", ptxdsl.loads(TEXT).scale, grid=lambda n: -(-n // 64), target=make.target,
        outputs={"res": lambda src: torch.empty_like(src)},
    )  # fmt: skip


@pytest.fixture
def scale_into(make):
    """(src, res, n, factor) -> ()"""
    return ptxdsl.torch.custom_op(
        "tests::scale_into", ptxdsl.loads(TEXT).scale, grid=lambda n: -(-n // 64), target=make.target
    )


# of PyTorch's own modules, while it traces and compiles
pytestmark = pytest.mark.filterwarnings("ignore")


def test_the_dispatcher_calls_it(torch, scale, scale_into, make):
    src, res = make(100), make(100)
    assert torch.equal(scale(src, 100, 3.0), src * 3)
    assert torch.equal(torch.ops.tests.scale(src, factor=2.0, n=100), src * 2)
    scale_into(src, res, 100, 5.0)
    assert torch.equal(res, src * 5)
    assert torch.ops.tests.scale_into.default._schema.arguments[1].alias_info.is_write


def test_opcheck(torch, scale, scale_into, make):
    """PyTorch's own tests of an operator: schema, autograd, fake tensors, dynamic shapes."""
    torch.library.opcheck(scale, (make(100), 100, 3.0))
    torch.library.opcheck(scale_into, (make(100), make(100), 100, 3.0))
    scale.register_autograd(
        lambda ctx, grad: (scale(grad.contiguous(), ctx.n, ctx.factor), None, None),
        setup_context=lambda ctx, inputs, output: ctx.__dict__.update(n=inputs[1], factor=inputs[2]),
    )
    torch.library.opcheck(scale, (make(100).requires_grad_(), 100, 3.0))


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile_keeps_it(torch, scale, scale_into, make, dynamic):
    """In one graph, also where it changes a tensor between two uses."""
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    def both(x, factor):
        buffer = torch.zeros_like(x)
        before = buffer + 1
        scale_into(x + 1, buffer, x.numel(), factor)
        return scale(buffer, buffer.numel(), factor) + before

    for compiled in (
        torch.compile(both, fullgraph=True, dynamic=dynamic, backend=backend),
        torch.compile(both, fullgraph=True, dynamic=dynamic, backend="aot_eager"),
    ):
        for n in (100, 77):
            x = make(n)
            torch.testing.assert_close(compiled(x, 3.0), (x + 1) * 9 + 1)
    targets = {str(node.target) for node in graphs[0].graph.nodes}
    assert targets >= {"tests.scale.default", "tests.scale_into.default"}
    assert len(graphs) == (1 if dynamic else 2)
    torch._dynamo.reset()


def test_tensors_of_the_wrong_kind_are_diagnostics(scale, scale_into, make):
    with pytest.raises(ptxdsl.LaunchError, match="E0904"):
        scale(make(100).double(), 100, 1.0)
    with pytest.raises(ptxdsl.LaunchError, match="E0906"):
        scale_into(make(200)[::2], make(100), 100, 1.0)


@pytest.mark.device
def test_inductor_and_graphs(gpu, torch):
    """The compiler that is the default, with and without CUDA graphs."""
    scale = ptxdsl.torch.custom_op(
        "tests::scale", ptxdsl.loads(TEXT).scale, grid=lambda n: -(-n // 64),
        outputs={"res": lambda src: torch.empty_like(src)},
    )  # fmt: skip
    for mode in (None, "reduce-overhead"):
        compiled = torch.compile(lambda x: scale(x.sin(), x.numel(), 2.0).cos(), fullgraph=True, mode=mode)
        for _ in range(4):
            x = torch.randn(1000, device="cuda")
            torch.testing.assert_close(compiled(x), (x.sin() * 2).cos())
        torch._dynamo.reset()


@pytest.mark.device
def test_the_device_of_the_tensors(gpu, torch):
    """As PyTorch's own operators, whichever device is current."""
    if gpu.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")
    scale = ptxdsl.torch.custom_op(
        "tests::scale", ptxdsl.loads(TEXT).scale, grid=lambda n: -(-n // 64),
        outputs={"res": lambda src: torch.empty_like(src)},
    )  # fmt: skip
    for index in (1, 0, 1):
        src = torch.randn(100, device=f"cuda:{index}")
        with torch.cuda.stream(torch.cuda.Stream(index)):
            res = scale(src, 100, 2.0)
        torch.cuda.synchronize(index)
        assert res.device == src.device and torch.equal(res, src * 2)


@pytest.mark.device
def test_the_sample(gpu):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(ROOT / "samples" / "torch_operator.py")],
        capture_output=True, text=True, env=environment, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "ok  the gradient is that of PyTorch's own operators\n"
