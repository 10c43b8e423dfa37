"""The command as a user types it."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_programs import GOOD

from ptxdsl import cli, driver
from ptxdsl.backend import assemble
from ptxdsl.backend.assemble import find_tool
from ptxdsl.diagnostics import CompileError
from ptxdsl.version import __version__


def _has_ptxas() -> bool:
    try:
        return bool(find_tool("ptxas") and find_tool("nvdisasm"))
    except CompileError:
        return False


needs_ptxas = pytest.mark.skipif(not _has_ptxas(), reason="ptxas and nvdisasm are not installed")

BAD = "@kernel\ndef f():\n    var x = unknown\n"


@pytest.fixture(autouse=True)
def compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXDSL_NO_CACHE", "1")  # test_ptx_cache.py has the other half


@dataclass
class Result:
    code: int
    out: str
    err: str


class Stream(io.TextIOWrapper):
    """A standard stream in memory."""

    def __init__(self, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    @property
    def data(self) -> bytes:
        return self.buffer.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch):
    def call(*arguments: str, stdin: bytes = b"", terminal: bool = False) -> Result:
        out, err = Stream(terminal), Stream(terminal)
        given = io.TextIOWrapper(io.BytesIO(stdin))
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            patch.setattr(sys, "stdin", given)
            code = cli.main(arguments)
        return Result(code, out.data.decode("utf-8", "replace"), err.data.decode())

    return call


# ----------------------------------------------------------------------------------------------------------- usage


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("compile",),
        ("compile", "a.pdsl", "--emit", "asm"),
        ("compile", "a.pdsl", "--em", "ast"),
        ("compile", "a.pdsl", "--wait", "never"),
        ("compile", "a.pdsl", "--ptx-version", "8"),
        ("compile", "a.pdsl", "--ptx-version", "8.x"),
        ("nothing",),
        ("cache", "drop"),
    ],
)
def test_usage_errors_exit_with_2(run, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert "usage: ptxdsl" in result.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("compile", "a.pdsl", "--em", "ast"),
            "ptxdsl compile: unrecognized arguments: --em ast\nusage: ptxdsl compile ",
        ),
        (
            ("check", "a.pdsl", "--emit", "ast"),
            "ptxdsl check: unrecognized arguments: --emit ast\nusage: ptxdsl check ",
        ),
        (("cache", "drop"), "ptxdsl cache: argument action: invalid choice"),
        (("nothing", "--x"), "ptxdsl: argument COMMAND: invalid choice"),
    ],
)
def test_a_usage_error_is_the_subcommands(run, arguments: tuple[str, ...], said: str) -> None:
    assert run(*arguments).err.startswith(said)


def test_help_names_every_stage(run) -> None:
    result = run("compile", "--help")
    assert result.code == 0
    assert "{" + ",".join(driver.STAGE_NAMES) + "}" in result.out


def test_stages_in_order() -> None:
    assert driver.STAGE_NAMES == ("tree", "ast", "tir", "rings", "llvm", "ptx", "cubin", "sass")


# ---------------------------------------------------------------------------------------------------------- compile


def test_ptx_to_standard_output(run, good: str) -> None:
    result = run("compile", good)
    assert (result.code, result.err) == (0, "")
    assert ".visible .entry add(" in result.out and ".target sm_90a" in result.out


def test_standard_input_and_output_are_the_same_as_files(run, good: str, tmp_path: Path) -> None:
    from_stdin = run("compile", "-", "-o", "-", stdin=GOOD.encode())
    out = tmp_path / "out.ptx"
    to_file = run("compile", good, "-o", str(out))
    assert (to_file.code, to_file.out, from_stdin.code) == (0, "", 0)
    without_name = out.read_text().replace("good.pdsl", "<stdin>")
    assert without_name == from_stdin.out


@pytest.mark.parametrize(("stage", "name"), [("ptx", "<stdin>.ptx"), ("llvm", "<stdin>.ll")])
def test_what_a_stage_prints_can_be_piped_into_a_command(run, stage: str, name: str) -> None:
    printed = run("compile", "-", "--emit", stage, stdin=GOOD.encode()).out
    again = run("compile", "-", stdin=printed.encode())
    assert (again.code, again.err) == (0, "")
    if stage == "llvm":
        assert f"from {name}\n" in again.out
    broken = run("check" if stage == "ptx" else "compile", "-", stdin=printed.encode() + b"\nfrob\n")
    assert broken.code == 1 and f" --> {name}:" in broken.err
    assert run("check", "-", stdin=b"// of a program\n" + GOOD.encode()).err.startswith("error[E0110]")


@pytest.mark.parametrize("stage", ["tree", "ast", "tir", "rings", "llvm"])
def test_every_stage_prints(run, good: str, stage: str) -> None:
    result = run("compile", good, "--emit", stage)
    assert (result.code, result.err) == (0, "")
    assert "add" in result.out and result.out.endswith("\n")


def test_options_reach_the_compiler(run, good: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[driver.Job] = []
    monkeypatch.setattr(driver, "show", lambda job, stop: seen.append(job) or "")
    flags = "--kernel add -D S=3 -D T=DType.float32 --arch sm_100a --ptx-version 8.8 --wait probe --check off"
    assert run("compile", good, *flags.split(), "--no-contract", "--no-ring-unroll", "--lineinfo").code == 0
    (job,) = seen
    assert (job.kernel, job.constants) == ("add", {"S": "3", "T": "DType.float32"})
    options = job.options
    assert (options.arch, options.ptx_version, options.wait, options.check) == ("sm_100a", (8, 8), "probe", "off")
    assert (options.contract, options.ring_unroll, options.lineinfo) == (False, False, True)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("missing.pdsl",), "E1001"),
        ((".",), "E1002"),
        (("-", "-D", "S"), "E1004"),
        (("-", "-D", "3=S"), "E1004"),
        (("-", "-D", "S="), "E1004"),
        (("-", "-D", "S=1", "-D", "S=2"), "E1005"),
        (("-", "-D", "S=1 +"), "E1010"),
        (("-", "-D", "S=1\nvar x = 2"), "E1010"),
        (("-", "--arch", "sm_91"), "E0702"),
        (("-", "-o", "/"), "E1007"),
        (("-", "-o", "/nowhere/at/all"), "E1007"),
        (("-", "-o", ""), "E1007"),
        (("-", "-o", "nowhere/"), "E1007"),
    ],
)
def test_what_cannot_be_done_is_a_diagnostic(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("compile", *arguments, stdin=GOOD.encode())
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error[{code}]: ")


@pytest.mark.parametrize(
    ("arguments", "message", "help"),
    [
        (("-D", "S=abc"), "unknown name `abc`", "write a constant expression: -D STAGES=3, -D CHECKED=True, "),
        (("-D", "S"), "-D S: expected NAME=VALUE", "the value is an expression such as 3, True or DType.float32"),
        (("-o", ""), "-o names no file", "name one, or leave -o out"),
        (("-o", "no/"), "cannot write 'no/': it is a folder's name", "for example no/kernel.ptx"),
        (("--arch", "sm_70"), "unknown target 'sm_70'", "the oldest target is sm_80"),
    ],
)
def test_what_to_write_instead(run, arguments: tuple[str, ...], message: str, help: str) -> None:
    program = b"@kernel\ndef f[S: Int](p: Pointer[Int32, MutAnyOrigin]):\n    p[] = Int32(S)\n"
    result = run("compile", "-", *arguments, stdin=program)
    assert result.code == 1 and message in result.err.splitlines()[0]
    assert help in result.err.splitlines()[-1]


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_the_source_is_never_overwritten(run, good: str, tmp_path: Path) -> None:
    link = tmp_path / "link.ptx"
    link.symlink_to(good)
    for output in (good, str(link), os.path.join(tmp_path, ".", "good.pdsl")):
        result = run("compile", good, "-o", output)
        assert result.code == 1 and result.err.startswith(f"error[E1012]: the output '{output}' is the file")
        assert Path(good).read_text() == GOOD


@pytest.mark.parametrize("text", [b"", b"\n", b"def f():\n    pass\n\xff\n", b"\0", b"x = (" * 5000])
def test_texts_that_are_no_programs(run, text: bytes) -> None:
    result = run("compile", "-", stdin=text)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error[E") and "E0001" not in result.err


FOREIGN_PTX = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n\tret;\n}\n"
FOREIGN_IR = """\
target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @k(ptr addrspace(1) %p) {
  store i32 1, ptr addrspace(1) %p
  ret void
}
"""


def test_a_ptx_file_starts_at_ptx(run, tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(FOREIGN_PTX)
    assert run("compile", str(path)).out == FOREIGN_PTX
    refused = run("compile", str(path), "--emit", "tir")
    assert refused.code == 1 and "error[E1011]: a .ptx file has no tir stage" in refused.err


def test_an_ll_file_is_not_checked(run, tmp_path: Path) -> None:
    path = tmp_path / "k.ll"
    path.write_text("define void @k() {\n  call void @llvm.nvvm.foo()\n  ret void\n}\ndeclare void @llvm.nvvm.foo()\n")
    assert run("check", str(path)).err.startswith("error[E1011]: a .ll file has nothing that can be checked\n")
    words = "error[E0806]: LLVM does not accept this file: there is no intrinsic llvm.nvvm.foo\n"
    assert run("compile", str(path)).err.startswith(words)


def test_a_ptx_file_names_its_target(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[driver.Job] = []
    monkeypatch.setattr(driver, "show", lambda job, stop: seen.append(job) or "")
    path = tmp_path / "k.ptx"
    for text, given in (("sm_100a", ()), ("sm_80, debug", ()), ("sm_75", ()), ("sm_80", ("--arch", "sm_90"))):
        path.write_text(FOREIGN_PTX.replace("sm_90a", text))
        run("compile", str(path), *given)
    assert [job.options.arch for job in seen] == ["sm_100a", "sm_80", "sm_90a", "sm_90"]


@needs_ptxas
def test_ptx_to_machine_code(run, tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(FOREIGN_PTX)
    result = run("compile", str(path), "--emit", "sass")
    assert result.code == 0 and "EXIT" in result.out
    assert re.match(
        r"note\[W0805\]: kernel `k` uses \d+ registers, 0 bytes of shared memory, no bytes spilled", result.err
    )
    assert run("compile", str(path), "--emit", "cubin").out[1:4] == "ELF"
    path.write_text(FOREIGN_PTX.replace("ret", "rte"))
    result = run("compile", str(path), "--emit", "cubin")
    assert result.code == 1 and result.err.startswith("error[E0802]: ptxas: ") and f" --> {path}:5:2\n" in result.err


@pytest.mark.parametrize(
    ("output", "stage"),
    [
        ("k.ptx", "ptx"), ("k.txt", "ptx"), ("cubin", "ptx"), ("k.ll", "llvm"), ("k.tir", "tir"),
        pytest.param("k.cubin", "cubin", marks=needs_ptxas), pytest.param("k.sass", "sass", marks=needs_ptxas),
    ],
)  # fmt: skip
def test_the_suffix_of_the_output_says_the_stage(run, good: str, tmp_path: Path, output: str, stage: str) -> None:
    path, asked = tmp_path / output, tmp_path / "asked"
    for name, arguments in (path, ()), (asked, ("--emit", stage)):
        assert run("compile", good, "-o", str(name), *arguments).code == 0
    assert path.read_bytes() == asked.read_bytes()
    assert run("compile", good, "-o", str(path), "--emit=ast").code == 0
    assert path.read_bytes().startswith(b"Module")


def test_an_ll_file_starts_at_llvm(run, tmp_path: Path) -> None:
    path = tmp_path / "k.ll"
    path.write_text(FOREIGN_IR)
    assert run("compile", str(path), "--emit", "llvm").out == FOREIGN_IR
    result = run("compile", str(path))
    assert result.code == 0 and "from k.ll\n" in result.out and ".visible .entry k(" in result.out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "LLVM IR parsing error"),
        (FOREIGN_IR.replace("store i32 1, ptr addrspace(1) %p", "call void @llvm.nvvm.tcgen05.wait.ld()")
         + "declare void @llvm.nvvm.tcgen05.wait.ld()\n", "LLVM ERROR: Cannot select"),
    ],
)  # fmt: skip
def test_llvm_ir_that_llvm_does_not_take(run, tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "k.ll"
    path.write_text(text)
    result = run("compile", str(path))
    assert result.code == 1 and result.err.startswith(f"error[E0806]: LLVM does not accept this file: {words}")


# ------------------------------------------------------------------------------------------------------- diagnostics


def test_diagnostics_go_to_standard_error(run, tmp_path: Path) -> None:
    path = tmp_path / "bad.pdsl"
    path.write_text(BAD)
    for command in ("compile", "check"):
        result = run(command, str(path))
        assert (result.code, result.out) == (1, "")
        assert f" --> {path}:3:13\n" in result.err and "\x1b" not in result.err


def test_check_of_a_good_file_is_silent(run, good: str) -> None:
    assert run("check", good) == Result(0, "", "")


def test_check_finds_kernels_of_one_name(run) -> None:
    result = run("check", "-", stdin=b"@kernel\ndef f(n: Int32):\n    pass\n@kernel\ndef f(n: Int32):\n    pass\n")
    assert result.code == 1
    assert result.err.startswith("error[E0227]: two kernels have the PTX name `f`\n --> <stdin>:5:5\n")


def test_json(run) -> None:
    result = run("compile", "-", "--json", stdin=BAD.encode())
    assert (result.code, result.out) == (1, "")
    document = json.loads(result.err)
    assert document["schema"] == 4
    (found,) = document["diagnostics"]
    assert list(found) == ["code", "severity", "message", "file", "start", "end", "notes", "help", "trips"]
    assert (found["severity"], found["file"]) == ("error", "<stdin>")
    assert (found["start"], found["end"]) == ({"line": 3, "column": 13}, {"line": 3, "column": 20})
    fine = run("compile", "-", "--json", stdin=GOOD.encode())
    assert json.loads(fine.err) == {"schema": 4, "diagnostics": []} and ".entry" in fine.out


def test_json_without_a_place(run) -> None:
    (found,) = json.loads(run("check", "missing.pdsl", "--json").err)["diagnostics"]
    assert (found["code"], found["file"], found["start"]) == ("E1001", None, None)


def test_colour_on_a_terminal_alone(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[" in run("check", "missing.pdsl", terminal=True).err
    assert "\x1b[" not in run("check", "missing.pdsl").err
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run("check", "missing.pdsl", terminal=True).err


def test_an_internal_error_is_a_diagnostic(run, good: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("broken")

    stage = driver.Stage("ast", fail, str)
    monkeypatch.setattr(driver, "STAGES", (driver.STAGES[0], stage, *driver.STAGES[2:]))
    monkeypatch.delenv("PTXDSL_DEBUG", raising=False)
    result = run("compile", good)
    assert result.code == 1 and "Traceback" not in result.err
    assert result.err.startswith("error[E0001]: internal error, please report it: ValueError: broken\n")
    monkeypatch.setenv("PTXDSL_DEBUG", "1")
    assert "ValueError: broken" in run("compile", good).err.split("Traceback (most recent call last)")[1]


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (MemoryError(), "error[E1092]: there is no more memory\n  = help: the process has limits"),
        (
            OSError(errno.EMFILE, "Too many open files", "x"),
            "error[E1091]: the operating system reports: 'x': Too m",
        ),
        (
            OSError("libllvmlite.so: cannot map"),
            "error[E1091]: the operating system reports: libllvmlite.so: cannot",
        ),
        (
            ImportError("No module named 'llvmlite'"),
            "error[E1090]: a part of ptxdsl cannot be loaded: No module named 'l",
        ),
    ],
)
def test_what_the_system_refuses_is_no_defect_of_the_compiler(
    run, good: str, monkeypatch: pytest.MonkeyPatch, problem: Exception, said: str
) -> None:
    def refuse(*_: object) -> None:
        raise problem

    for place in ((driver, "parse_once"), (cli, "read_input")):  # within a compilation, and outside
        with monkeypatch.context() as patch:
            patch.setattr(*place, refuse)
            assert run("compile", good).err.startswith(said)


def test_an_interrupt_is_quiet(run, good: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(driver, "show", interrupt)
    assert run("compile", good) == Result(130, "", "")


# ------------------------------------------------------------------------------------------------------- output files


def test_binary_output_is_not_for_a_terminal(run, good: str) -> None:
    result = run("compile", good, "--emit", "cubin", terminal=True)
    assert (result.code, result.out) == (1, "") and "E1006" in result.err


def test_a_failed_write_leaves_the_old_file(run, good: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.ptx"
    out.write_text("old")

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    result = run("compile", good, "-o", str(out))
    assert result.code == 1 and f"error[E1007]: cannot write '{out}': No space left on device" in result.err
    assert out.read_text() == "old" and sorted(os.listdir(tmp_path)) == ["good.pdsl", "out.ptx"]


def test_errors_write_no_file(run, tmp_path: Path) -> None:
    assert run("compile", "-", "-o", str(tmp_path / "out.ptx"), stdin=BAD.encode()).code == 1
    assert not os.listdir(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="links and devices")
def test_links_and_devices_stay_what_they_are(run, good: str, tmp_path: Path) -> None:
    target, link = tmp_path / "target.ptx", tmp_path / "link.ptx"
    target.write_text("old")
    link.symlink_to(target)
    assert run("compile", good, "-o", str(link)).code == 0
    assert link.is_symlink() and ".entry" in target.read_text()
    assert run("compile", good, "-o", os.devnull).code == 0
    assert not os.path.isfile(os.devnull)


# ---------------------------------------------------------------------------------------------------- other commands


def test_version(run) -> None:
    import ptxdsl

    result = run("version")
    assert result.out.startswith(f"ptxdsl {__version__}\n") and "\nllvmlite " in result.out
    assert ptxdsl.__version__ == __version__


def test_version_names_the_tools_in_use(run, monkeypatch, tmp_path) -> None:
    ptxas = tmp_path / "ptxas"
    ptxas.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 12.1, V12.1.105'\n")
    ptxas.chmod(0o755)
    monkeypatch.setattr(assemble, "_packaged", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    out = run("version").out
    assert f"ptxas 12.1.105 ({ptxas})\nnvdisasm is not installed\n" in out
    ptxas.write_text("no program")
    assert "\nptxas cannot be run: " in run("version").out


def test_version_as_an_option(run) -> None:
    assert run("--version") == run("version")


def test_targets(run) -> None:
    from ptxdsl.targets import FEATURES, TARGETS

    rows = [line.split() for line in run("targets").out.splitlines() if line]
    assert {row[0] for row in rows} == {"target", "feature", *TARGETS, *FEATURES}
    assert ["wgmma", "8.0", "sm_90a"] in rows
    assert ["mbarrier", "7.0", "all"] in rows and ["tma", "8.0", "sm_90", "and", "later"] in rows


def test_cache_commands(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ptxdsl.files import cache

    monkeypatch.setenv("PTXDSL_CACHE_DIR", str(tmp_path / "c"))
    assert run("cache", "info").out == f"directory {tmp_path / 'c'}\nentries 0\nbytes 0\n"
    cache.store("x", cache.key("x"), b"payload")
    assert "entries 1\n" in run("cache", "info").out
    assert run("cache", "clear").out == "removed 1 entry\n"
    assert run("cache", "clear").out == "removed 0 entries\n"


@pytest.mark.skipif(sys.platform == "win32", reason="permission bits")
def test_a_cache_that_cannot_be_cleared_is_told(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ptxdsl.files import cache

    monkeypatch.setenv("PTXDSL_CACHE_DIR", str(tmp_path / "c"))
    cache.store("x", cache.key("x"), b"payload")
    with monkeypatch.context() as patch:
        patch.setattr(cache, "_quietly", lambda *_: False)
        assert "error[E1026]: the cache is not empty: 1 cannot be removed\n" in run("cache", "clear").err
    (tmp_path / "c").chmod(0o777)
    assert "/c, which is not used: others can write to it" in run("cache", "info").out
    assert "error[E1026]" in run("cache", "clear").err
