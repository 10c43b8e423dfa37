"""Kernels as operators of PyTorch: `torch.compile` keeps them in its graph, and autograd differentiates them.

run: python samples/torch_operator.py
It runs on the GPU if there is one, otherwise in the simulator. PyTorch 2.4 or later.
"""

from typing import Any

import torch

import ptxdsl

THREADS = 256
kernels = ptxdsl.loads(f"""
@kernel(threads={THREADS})
def squared_relu(x: Pointer[Float32, ImmutAnyOrigin], y: Pointer[Float32, MutAnyOrigin], n: Int32):
    var i = Int32(global_idx.x)
    if i < n:
        var positive = max(x[unsafe_offset=i], Float32(0))
        y[unsafe_offset=i] = positive * positive


@kernel(threads={THREADS})
def squared_relu_backward(
    x: Pointer[Float32, ImmutAnyOrigin], dy: Pointer[Float32, ImmutAnyOrigin], dx: Pointer[Float32, MutAnyOrigin],
    n: Int32,
):
    var i = Int32(global_idx.x)
    if i < n:
        dx[unsafe_offset=i] = 2 * max(x[unsafe_offset=i], Float32(0)) * dy[unsafe_offset=i]
""")


def blocks(n: int) -> int:
    return -(-n // THREADS)


# (Tensor x, SymInt n) -> Tensor: the operator creates y, for real tensors and for the compiler's fake ones
squared_relu = ptxdsl.torch.custom_op(
    "samples::squared_relu", kernels.squared_relu, grid=blocks, outputs={"y": lambda x: torch.empty_like(x)}
)
# (Tensor x, Tensor dy, Tensor(a!) dx, SymInt n) -> (): a tensor behind a mutable pointer is declared as mutated
squared_relu_backward = ptxdsl.torch.custom_op(
    "samples::squared_relu_backward", kernels.squared_relu_backward, grid=blocks
)


def keep(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:  # PyTorch gives these by name
    ctx.save_for_backward(inputs[0])


def backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor, None]:
    (x,) = ctx.saved_tensors
    dx = torch.empty_like(x)
    squared_relu_backward(x, dy.contiguous(), dx, x.numel())
    return dx, None


squared_relu.register_autograd(backward, setup_context=keep)


def loss(x: torch.Tensor) -> Any:
    return squared_relu(x.contiguous(), x.numel()).sin().sum()


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(1000, device="cuda" if torch.cuda.is_available() else "cpu", requires_grad=True)
    torch.compile(loss, fullgraph=True)(x).backward()
    (expected,) = torch.autograd.grad(torch.relu(x).square().sin().sum(), x)
    torch.testing.assert_close(x.grad, expected)
    print("ok  the gradient is that of PyTorch's own operators")
