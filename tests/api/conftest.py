"""The driver of these tests is played (played_driver.py); kernels go to it as PTX."""

import sys
import types
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from fake_library import built, fake  # noqa: F401
from played_driver import DeviceArray, FakeDriver, Tensor


@pytest.fixture(autouse=True)
def assembler(monkeypatch):
    """Kernels go to the driver as PTX; what ptxas does with them is asked in test_loading."""
    monkeypatch.setenv("PTXDSL_ASSEMBLER", "driver")


@pytest.fixture
def driver():
    return FakeDriver()


@pytest.fixture
def array():
    return DeviceArray


@pytest.fixture
def tensor(monkeypatch):
    """Tensors whose library has 0x77 as the current stream of device 0."""
    torch = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace(current_stream=lambda index: types.SimpleNamespace(cuda_stream=0x77 + index))
    monkeypatch.setitem(sys.modules, "torch", torch)
    return Tensor
