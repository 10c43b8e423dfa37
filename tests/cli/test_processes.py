"""The command in a process of its own: its streams, and what it loads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ptxdsl import cli


@pytest.fixture(autouse=True)
def compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXDSL_NO_CACHE", "1")  # test_ptx_cache.py has the other half


def process(*arguments: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, timeout=60, **options)  # type: ignore[call-overload, no-any-return]


def test_the_module_runs(good: str) -> None:
    done = process("-m", "ptxdsl", "compile", good)
    assert (done.returncode, done.stderr) == (0, b"") and b".entry add(" in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="pipes")
def test_a_reader_that_goes_away_is_no_error(good: str) -> None:
    code = "import os, sys; r, w = os.pipe(); os.close(r); os.dup2(w, 1); from ptxdsl.cli import main; sys.exit(main())"
    done = process("-c", code, "compile", good)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes")
@pytest.mark.parametrize("streams", [(1,), (2,), (1, 2)])
def test_a_missed_expectation_stays_one_whoever_reads(streams: tuple[int, ...], tmp_path: Path) -> None:
    (tmp_path / "k.pdsl").write_text("@kernel\ndef k(p: Pointer[Int32, MutAnyOrigin]):\n    p[unsafe_offset=1] = 7\n")
    code = (
        f"import os, sys; r, w = os.pipe(); os.close(r); [os.dup2(w, s) for s in {streams}]\n"
        "from ptxdsl.cli import main\n"
        "sys.exit(main('run k.pdsl --target sim --block 1 --arg p=zeros:i32:1'.split()))"
    )
    done = process("-c", code, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[1])})
    assert done.returncode == 1
    assert (b"E1120" in done.stderr) is (2 not in streams)
    assert (b"fault" in done.stdout) is (1 not in streams)


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
@pytest.mark.parametrize(
    ("redirection", "said"),
    [("< /dev/zero", "'<stdin>' is longer than 16 MiB"), ("<&-", "there is no standard input")],
)
def test_a_standard_input_that_is_no_text(redirection: str, said: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[1])}
    command = f"'{sys.executable}' -m ptxdsl check - {redirection}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode == 1 and done.stderr.startswith(f"error[E1003]: {said}\n")


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
def test_diagnostics_never_go_to_standard_output(tmp_path: Path) -> None:
    (tmp_path / "k.pdsl").write_text("x = 1\n")
    command = f"'{sys.executable}' -m ptxdsl compile k.pdsl 2>&-"
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[1])}
    done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, env=environment, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")


HIDDEN = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("cuda", "torch", "cupy"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
"""


def test_it_works_without_cuda(good: str) -> None:
    """Where cuda-python has no wheel: any import of it fails."""
    script = """
import ptxdsl
from ptxdsl.cli import main
assert ".entry" in ptxdsl.compile(sys.argv[-1]).ptx
sys.exit(main())
"""
    done = process("-c", HIDDEN + script, "compile", good)
    assert (done.returncode, done.stderr) == (0, b"") and b".entry add(" in done.stdout


def test_its_tests_pass_without_cuda() -> None:
    """Those of launches from Python, which would import it before others: with NumPy's arrays, in the simulator."""
    folder = Path(__file__).parents[1] / "api"
    script = "import pytest\nsys.exit(pytest.main(sys.argv[1:]))\n"
    files = [str(folder / name) for name in ("test_simulate.py", "test_arguments.py")]
    done = process("-c", HIDDEN + script, "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files)
    assert done.returncode == 0 and re.search(rb"\n\d+ passed", done.stdout), done.stdout[-2000:].decode()


@pytest.mark.parametrize(
    ("command", "loaded"),
    [
        ("['explain', 'E0001']", []),
        ("['compile', sys.argv[1], '--emit', 'ast']", []),
        ("['compile', sys.argv[1]]", ["llvmlite"]),
    ],
)
def test_a_command_loads_what_it_needs_alone(good: str, command: str, loaded: list[str]) -> None:
    assert cli.main(["compile", good, "-o", os.devnull]) == 0  # now the cache has what it wants
    code = (
        f"import sys; from ptxdsl.cli import main; main({command});"
        "print(sorted({'lark', 'llvmlite', 'numpy', 'cuda', 'torch', 'typing'} & sys.modules.keys()), file=sys.stderr)"
    )
    assert process("-c", code, good).stderr == f"{loaded}\n".encode()


def test_a_plain_kernel_needs_no_regular_expressions() -> None:
    kernel = str(Path(__file__).parents[2] / "samples" / "04_kernel_a.pdsl")
    assert cli.main(["compile", kernel, "-o", os.devnull]) == 0  # now the cache has what it wants
    code = (
        "import sys; before = set(sys.modules); from ptxdsl.cli import main;"
        f"main(['compile', {kernel!r}, '--no-cache', '-o', {os.devnull!r}]);"
        "print(sorted({'re', 'enum', 'contextlib', 'importlib'} & (sys.modules.keys() - before)), file=sys.stderr)"
    )
    assert process("-c", code).stderr == b"[]\n"


def test_fractions_are_for_float_literals_alone() -> None:
    code = "import sys, ptxdsl.elaborate, ptxdsl.backend.emit_ptx; print('fractions' in sys.modules, file=sys.stderr)"
    assert process("-c", code).stderr == b"False\n"


def test_a_process_does_not_look_for_garbage_before_it_ends(good: str) -> None:
    code = """
import gc, sys
def told(phase, info):
    if "ptxdsl.backend.emit_ptx" in sys.modules:
        print("collected when all was done", file=sys.stderr)
gc.callbacks.append(told)
from ptxdsl.cli import command
command()
"""
    done = process("-c", code, "compile", good, "-o", os.devnull, "--no-cache")
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
def test_a_closed_standard_output_is_a_diagnostic(good: str, tmp_path: Path) -> None:
    command = f"'{sys.executable}' -m ptxdsl compile '{good}'"
    environment = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[1])}
    done = subprocess.run(["sh", "-c", f"{command} >&-"], capture_output=True, text=True, env=environment)
    assert done.returncode == 1 and "E1007" in done.stderr
    written = tmp_path / "out.ptx"
    subprocess.run(["sh", "-c", f"{command} -o '{written}' >&-"], check=True, env=environment)
    assert ".entry add(" in written.read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_compilation_takes_little_memory() -> None:
    sample = Path(cli.__file__).parents[1] / "samples" / "04_kernel_a.pdsl"
    code = (
        "import sys; from ptxdsl.cli import main; main(['compile', sys.argv[1], '--no-cache']);"
        "print(open('/proc/self/status').read(), file=sys.stderr)"
    )
    peak = re.search(rb"VmHWM:\s+(\d+) kB", process("-c", code, str(sample)).stderr)
    assert peak is not None and int(peak[1]) < 130 * 1024
