"""The CUDA driver in C that does nothing (fake_cuda/libcuda.c): how it is built, and its state."""

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ptxdsl.cuda import driver as cuda_driver
from ptxdsl.cuda import library


def header():
    """The folder of cuda.h: of NVIDIA's packages or the toolkit."""
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(root) / "cu13" for root in spec.submodule_search_locations] if spec else []
    roots += [Path(os.environ[v]) for v in ("CUDA_HOME", "CUDA_PATH") if v in os.environ] + [Path("/usr/local/cuda")]
    return next((root / "include" for root in roots if (root / "include" / "cuda.h").is_file()), None)


class Fake(ctypes.Structure):
    """The C file's ``fake``."""

    _fields_ = (
        *((name, ctypes.c_int) for name in (
            "launches", "loads", "unloads", "devices", "capture_mode", "shared", "large_clusters", "endless", "events",
            "retained", "fails", "frees",
        )),
        ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared_bytes", ctypes.c_uint),
        ("attribute_count", ctypes.c_uint), ("attribute_ids", ctypes.c_int * 4), ("stream", ctypes.c_void_p),
        ("parameters", ctypes.c_ulonglong * 4), ("parameter_count", ctypes.c_int),
        ("fills", ctypes.c_int), ("timed", ctypes.c_int), ("filled", ctypes.c_ulonglong),
        ("milliseconds", ctypes.c_float * 8),
    )  # fmt: skip


class FakeTensor(ctypes.Structure):
    """The C file's ``fake_tensor``: a DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int), ("device_id", ctypes.c_int), ("ndim", ctypes.c_int),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    compiler, folder = shutil.which("cc"), header()
    if compiler is None or folder is None or sys.platform != "linux":
        pytest.skip("needs a C compiler and cuda.h (of the package nvidia-cuda-runtime)")
    path = tmp_path_factory.mktemp("cuda") / "libcuda.so.1"
    source = Path(__file__).parent / "fake_cuda" / "libcuda.c"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", f"-I{folder}", str(source), "-o", str(path)], check=True)
    return path


@pytest.fixture
def fake(built, monkeypatch):
    """The process's driver is the one in C; its state, as new."""
    monkeypatch.setattr(library, "NAMES", {sys.platform: str(built)})
    monkeypatch.setattr(cuda_driver, "_driver", None)
    handle = ctypes.CDLL(str(built))
    state = Fake.in_dll(handle, "fake")
    ctypes.memset(ctypes.byref(state), 0, ctypes.sizeof(state))
    state.devices = 1
    handle.cuCtxSetCurrent(None)
    return state
