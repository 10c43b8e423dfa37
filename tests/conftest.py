"""What every test folder shares: golden files and a cache of the test run's own."""

from __future__ import annotations

import gc
import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ptxdsl import driver
from ptxdsl.backend.assemble import find_tool
from ptxdsl.diagnostics import CompileError


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files with what the tests get")


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until the tests are collected, which are kept
    driver.VERIFIES = True
    # Else each process that a test starts would compile the package's modules anew, for half a second.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    # A shell has what it starts in the background ignore Ctrl-C, nohup the end of the terminal, and that is inherited.
    # Tests send these signals.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.name == "posix" and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # Set before the workers start, so that they share one cache and the user's is left alone.
    cache = getattr(config, "cache", None)  # None with -p no:cacheprovider
    if cache is not None and "PTXDSL_CACHE_DIR" not in os.environ:
        folder = Path(cache.mkdir("ptxdsl"))
        folder.chmod(0o700)
        os.environ["PTXDSL_CACHE_DIR"] = str(folder)


def pytest_collection_finish() -> None:
    """Python looks for garbage seldom, and not among the tests: it would be a tenth of their time."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden("a.ptx", text)``: the text equals the file of that name in ``golden/`` beside the test."""

    def check(name: str, text: str) -> None:
        path = request.path.parent / "golden" / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        assert path.is_file(), f"{path} does not exist: run pytest --update-golden"
        assert text == path.read_bytes().decode("utf-8")

    return check


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's own cache, in which processes find the parser's tables and the library's trees: these take seconds."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    for entry in Path(os.environ.get("PTXDSL_CACHE_DIR", folder)).iterdir():
        if entry.name.startswith(("tables-", "stdlib-")):
            shutil.copy(entry, folder)
    monkeypatch.setenv("PTXDSL_CACHE_DIR", str(folder))
    monkeypatch.delenv("PTXDSL_NO_CACHE", raising=False)
    return folder


@pytest.fixture(scope="session")
def ptxas() -> str:
    """The assembler's path; tests that need it are skipped where it is not installed."""
    try:
        return find_tool("ptxas")
    except CompileError:
        pytest.skip("ptxas is not installed")


@pytest.fixture(scope="session")
def nvcc(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """``nvcc(path, "-arch=sm_80", …)``: the PTX of a CUDA file; tests that need it are skipped where it is not
    installed. It takes a second a file: what it made stays in pytest's cache."""
    program = shutil.which("nvcc")
    if program is None:
        pytest.skip("nvcc is not installed")
    cache = getattr(request.config, "cache", None)
    folder = cache.mkdir("nvcc") if cache else tmp_path_factory.mktemp("nvcc")
    version = subprocess.run([program, "--version"], check=True, capture_output=True).stdout

    def ptx(path: Path, *options: str) -> str:
        made_of = hashlib.sha256(b"\0".join((version, path.read_bytes(), " ".join(options).encode()))).hexdigest()
        known = folder / f"{path.stem}-{made_of}.ptx"
        if not known.is_file():
            output = tmp_path_factory.mktemp("nvcc") / f"{path.stem}.ptx"
            command = [program, "-ptx", "-std=c++17", *options, "-o", str(output), str(path)]
            subprocess.run(command, check=True, capture_output=True)
            shutil.copy(output, part := known.with_suffix(f".{os.getpid()}"))
            os.replace(part, known)
        return known.read_text(encoding="utf-8")

    return ptx


def _cuda_header() -> Path | None:
    """The folder of cuda.h: of NVIDIA's packages or the toolkit."""
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(root) / "cu13" for root in spec.submodule_search_locations or ()] if spec else []
    roots += [Path(os.environ[v]) for v in ("CUDA_HOME", "CUDA_PATH") if v in os.environ] + [Path("/usr/local/cuda")]
    return next((root / "include" for root in roots if (root / "include" / "cuda.h").is_file()), None)


@pytest.fixture(scope="session")
def c_compiler() -> Callable[..., None]:
    """``c_compiler("gcc", "-c", path, …)``: runs ``gcc`` or ``g++`` with cuda.h in sight and every warning an error;
    tests that need it are skipped where there is no compiler or no cuda.h."""
    header = _cuda_header()
    if header is None or not shutil.which("gcc") or not shutil.which("g++"):
        pytest.skip("needs gcc, g++ and cuda.h (of the package nvidia-cuda-runtime)")

    def compile(program: str, *words: str | Path) -> None:
        # cuda.h itself is no C99: -isystem keeps its warnings out
        command = [program, "-Wall", "-Wextra", "-Werror", "-pedantic", "-isystem", str(header), *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    return compile


@pytest.fixture(scope="module")
def ipython(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The only shell of IPython, without colours and history."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.ipython_dir = str(tmp_path_factory.mktemp("ipython"))
    hooks, main = (sys.displayhook, sys.excepthook), sys.modules["__main__"]
    yield InteractiveShell.instance(config=config)
    InteractiveShell.clear_instance()
    sys.displayhook, sys.excepthook = hooks
    sys.modules["__main__"] = main
