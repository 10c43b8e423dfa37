"""Kernels and machine code on disk: found again, void where what was read has changed, safe among processes."""

import os
import shutil
import stat
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

import ptxdsl
from ptxdsl import driver, kernel_cache
from ptxdsl.backend import cubin_cache
from ptxdsl.files import cache

MAIN = """\
from steps import step


@kernel
def add[times: Int = 2](a: Pointer[Int32, MutAnyOrigin]):
    a[unsafe_offset=Int32(thread_idx.x)] += step() * Int32(times)
"""
STEPS = "def step() -> Int32:\n    return {}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, own_cache):
    """A program of two files, and a cache without kernels."""
    monkeypatch.setattr(kernel_cache, "_compiler", lambda: "this one")  # others may edit it meanwhile
    (tmp_path / "add.pdsl").write_text(MAIN)
    (tmp_path / "steps.pdsl").write_text(STEPS.format(7))
    return tmp_path


@pytest.fixture
def compilations(monkeypatch):
    """A list with one element for each time that the compiler works."""
    made, real = [], driver.compiled
    monkeypatch.setattr(driver, "compiled", lambda job: made.append(job.kernel) or real(job))
    return made


def compile_(folder, arch="sm_90a", **constants):
    """As a new process would: nothing is kept of an earlier module."""
    return ptxdsl.load(folder / "add.pdsl")["add"].specialize(**constants).compile(arch)


def entries(folder, kind):
    return sorted((folder / "cache").glob(f"{kind}-cpython*"))


def test_a_kernel_is_compiled_once_for_all_processes(folder, compilations):
    first, second = compile_(folder), compile_(folder)
    assert compilations == ["add"]
    for name in ("ptx", "signatures", "options", "inputs_digest", "warnings"):
        assert getattr(first, name) == getattr(second, name)
    assert list(map(str, first.line_map)) == list(map(str, second.line_map))
    assert second.tir == first.tir  # compiled again
    assert second.signatures["add_2"].params == first.signatures["add_2"].params


@pytest.mark.parametrize("change", [{"times": 3}, {"arch": "sm_80"}])
def test_what_else_is_asked_for_is_another_entry(folder, compilations, change):
    assert compile_(folder).ptx != compile_(folder, **change).ptx
    assert len(compilations) == 2


def test_options_make_other_entries(folder, compilations):
    for options in ({}, {"wait": "probe"}, {"contract": False}, {"lineinfo": True}, {"ring_unroll": False}):
        ptxdsl.load(folder / "add.pdsl", **options)["add"].compile()
    assert len(compilations) == 5


def test_a_changed_text_or_import_is_compiled(folder, compilations):
    before = compile_(folder).ptx
    (folder / "steps.pdsl").write_text(STEPS.format(9))
    assert compile_(folder).ptx != before
    (folder / "steps.pdsl").write_text(STEPS.format(7))
    assert compile_(folder).ptx == before
    (folder / "add.pdsl").write_text(MAIN.replace("+=", "-="))
    assert compile_(folder).ptx != before
    (folder / "add.pdsl").write_text(MAIN)
    assert compile_(folder).ptx == before
    # an entry is what was made last of its key: text and options, to be void where an import differs
    assert len(compilations) == 4


def test_a_file_that_takes_an_imports_place_is_seen(folder, compilations):
    (folder / "add.pdsl").write_text(MAIN.replace("from steps", "from max.gpu import thread_idx\nfrom steps"))
    compile_(folder)
    (folder / "max").mkdir()
    (folder / "max" / "gpu.pdsl").write_text("struct thread_idx:\n    comptime x = 40\n")
    assert "tid.x" not in compile_(folder).ptx


def test_a_module_of_another_folder(folder, compilations, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder / "steps.pdsl").rename(elsewhere / "steps.pdsl")
    with pytest.raises(ptxdsl.CompileError, match="E0250"):
        compile_(folder)
    first, again = (ptxdsl.load(folder / "add.pdsl", include=elsewhere)["add"].compile() for _ in range(2))
    of_text = ptxdsl.loads(MAIN, "<text>", include=[str(elsewhere)])["add"]
    assert first.ptx == again.ptx and of_text.compile().signatures == first.signatures
    assert compilations == ["add"] * 3
    for wrong in (3, [3], None):
        with pytest.raises(TypeError, match="include is a folder or several"):
            ptxdsl.loads(MAIN, include=wrong)


def test_another_compiler_is_another_entry(folder, compilations, monkeypatch):
    compile_(folder)
    monkeypatch.setattr(kernel_cache, "_compiler", lambda: "the next one")
    compile_(folder)
    assert len(compilations) == 2


DAMAGES = {
    "empty": lambda data: b"",
    "other": lambda data: b"x",
    "truncated": lambda data: data[: len(data) // 2],
    "changed": lambda data: data[:-9] + b"?" * 9,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_made_again(folder, compilations, damage):
    first = compile_(folder)
    (path,) = entries(folder, "kernel")
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert compile_(folder).ptx == first.ptx
    assert compile_(folder).ptx == first.ptx and len(compilations) == 2


def test_a_payload_of_other_times_is_made_again(folder, compilations, monkeypatch):
    real = kernel_cache.compilations.look_up
    first = compile_(folder)
    monkeypatch.setattr(kernel_cache.compilations, "look_up", lambda *given: real(*given)[:-20])
    assert compile_(folder).ptx == first.ptx and len(compilations) == 2


def test_it_can_be_turned_off(folder, compilations, monkeypatch):
    monkeypatch.setenv("PTXDSL_NO_CACHE", "1")
    compile_(folder)
    compile_(folder)
    assert len(compilations) == 2 and entries(folder, "kernel") == []


def test_a_directory_that_others_can_write_is_not_believed(folder, compilations):
    compile_(folder)
    (folder / "cache").chmod(0o777)
    compile_(folder)
    assert len(compilations) == 2
    (folder / "cache").chmod(0o700)


@pytest.mark.skipif(os.name != "posix", reason="permissions")
def test_a_directory_that_cannot_be_written_costs_time_only(folder, compilations):
    (folder / "cache").chmod(0o500)
    if os.access(folder / "cache", os.W_OK):  # root
        shutil.rmtree(folder / "cache")
        (folder / "cache").write_text("a file where the directory should be")
    first, second = compile_(folder), compile_(folder)
    assert first.ptx == second.ptx and len(compilations) == 2
    if (folder / "cache").is_dir():
        (folder / "cache").chmod(0o700)


def test_a_full_disk_costs_time_only(folder, compilations, monkeypatch):
    compile_(folder)
    real = os.fdopen

    def full(handle, mode="r", *given, **more):
        file = real(handle, mode, *given, **more)
        if "w" in mode:

            def write(data):
                raise OSError(28, "No space left on device")

            file.close()
            return nullcontext(SimpleNamespace(write=write))
        return file

    monkeypatch.setattr(cache.os, "fdopen", full)
    assert compile_(folder, times=5).ptx
    assert compile_(folder, times=5).ptx
    assert len(compilations) == 3
    assert [p.name for p in (folder / "cache").iterdir() if p.name.endswith(".tmp")] == []


def test_what_was_not_used_for_longest_goes(folder, monkeypatch):
    monkeypatch.setattr(cache, "SIZE_LIMIT", 40_000)
    monkeypatch.setattr(cache, "_SIZE_AFTER_EVICTION", 30_000)
    for times in range(40):
        compile_(folder, times=times)
    assert 0 < sum(size for _, size in cache.entries()) <= 60_000
    compile_(folder, times=39)


# ---------------------------------------------------------------------------------------------------------------- cubin


@pytest.fixture
def assemblies(monkeypatch, ptxas):
    made, real = [], cubin_cache.run_ptxas
    monkeypatch.setattr(cubin_cache, "run_ptxas", lambda *given: made.append(1) or real(*given))
    return made


def test_machine_code_is_made_once(folder, assemblies):
    first, second = compile_(folder), compile_(folder)
    assert first.cubin() == first.cubin() == second.cubin()
    assert first.resources == second.resources and first.resources["add_2"].registers > 0
    assert assemblies == [1]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_machine_code_is_made_again(folder, assemblies, damage):
    first = compile_(folder).cubin()
    (path,) = entries(folder, "cubin")
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert compile_(folder).cubin() == compile_(folder).cubin() == first
    assert assemblies == [1, 1]


def test_another_assembler_is_another_entry(folder, assemblies, monkeypatch):
    compile_(folder).cubin()
    monkeypatch.setattr(cubin_cache, "assembler", lambda: "a newer one")
    compile_(folder).cubin()
    assert assemblies == [1, 1]


def test_ptxas_notes_come_from_the_cache_too(folder, assemblies, monkeypatch):
    words = "ptxas info    : (C7510) Potential Performance Loss: it is slow in function 'add_2'\n"
    real = cubin_cache.run_ptxas
    monkeypatch.setattr(cubin_cache, "run_ptxas", lambda *given: (0, words, real(*given)[2]))
    logs = [cubin_cache.assembled(compile_(folder)).log for _ in range(2)]
    (first,), (second,) = logs
    assert (first.code, first.message, str(first.span)) == (second.code, second.message, str(second.span))
    assert first.code == "W0803" and first.span.source.name.endswith("add.pdsl")
    assert assemblies == [1]


def test_a_failure_of_ptxas_is_not_kept(folder, assemblies):
    text = '@kernel\ndef k(n: Int32):\n    inlined_assembly["nonsense;", NoneType, constraints=""]()\n'
    for _ in range(2):
        with pytest.raises(ptxdsl.CompileError, match="E0802"):
            ptxdsl.loads(text, "k.pdsl")["k"].compile().cubin()
    assert assemblies == [1, 1] and entries(folder, "cubin") == []


# ------------------------------------------------------------------------------------------------------------ processes

STRESS = """
import sys
import ptxdsl
from ptxdsl import kernel_cache
kernel_cache._compiler = lambda: "this one"
for times in range(6):
    made = ptxdsl.load(sys.argv[1])["add"].specialize(times=times).compile()
    print(times, hash(made.ptx), made.signatures[next(iter(made.signatures))].name)
"""


def test_processes_fill_one_cache_at_a_time(folder):
    """Four processes, six kernels each into an empty cache: right results, and a clean directory."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONPATH": str(Path(ptxdsl.__file__).parents[1])}

    def run(_):
        command = [sys.executable, "-c", textwrap.dedent(STRESS), str(folder / "add.pdsl")]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout

    with ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(run, range(4)))
    assert len(set(outputs)) == 1
    assert len(outputs[0].splitlines()) == len(set(outputs[0].splitlines())) == 6
    assert len(entries(folder, "kernel")) == 6
    assert [p for p in (folder / "cache").iterdir() if p.name.endswith(".tmp")] == []
    assert run(0) == outputs[0]  # all of it from the cache
    for path in (folder / "cache").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_threads_compile_a_kernel_once(folder, compilations):
    kernel = ptxdsl.load(folder / "add.pdsl")["add"]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: kernel.compile(), range(8)))
    assert all(one is made[0] for one in made) and compilations == ["add"]


def test_a_kernel_of_the_cache_needs_no_compiler(folder):
    """Neither parser nor LLVM is loaded."""
    code = f"""
import sys, ptxdsl
from ptxdsl import kernel_cache
kernel_cache._compiler = lambda: "this one"
made = ptxdsl.load({str(folder / "add.pdsl")!r}).add.compile()
heavy = ("lark", "llvmlite.binding", "numpy", "ptxdsl.driver", "ptxdsl.syntax.lalr", "ptxdsl.elaborate")
print(sorted(m for m in heavy if m in sys.modules))
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(ptxdsl.__file__).parents[1])}
    run = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
           for _ in range(2)]  # fmt: skip
    assert "ptxdsl.driver" in run[0].stdout
    assert run[1].stdout == "[]\n"
