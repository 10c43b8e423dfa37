"""Every code block in README.md and docs/ does what is said around it: it compiles, fails as announced, or runs."""

from __future__ import annotations

import ast
import re
import shlex
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from blocks import BLOCKS, ROOT, Block, before, blocks, said

import ptxdsl
from ptxdsl import LaunchError, cli, driver
from ptxdsl.backend.assemble import find_tool
from ptxdsl.command.findings import check
from ptxdsl.cuda.driver import current_driver
from ptxdsl.diagnostics import CompileError, Diagnostic
from ptxdsl.options import Options
from ptxdsl.source import Source

NAME = "example.pdsl"
ANYTHING = "…"  # in shown output: any number of lines, or the rest of one
FOREIGN_COMMANDS = (
    "python3 -m venv", "pip install", "python -m pytest", "python benchmarks/", "git ", "cd ", "cc ", "./program",
)  # fmt: skip


def by_name(*languages: str) -> Any:
    return pytest.mark.parametrize("block", [pytest.param(b, id=b.name) for b in blocks(*languages)])


def test_every_block_is_of_a_kind_that_is_tested() -> None:
    for found in BLOCKS.values():
        for block in found:
            known = block.language in ("mojo", "sh", "console", "python", "ipython", "c")
            shown = block.language == "text" and ({"says", "picture", "in"} & set(block.marks))
            assert known or shown, f"{block.name}: '{block.language}' without a mark"


# ------------------------------------------------------------------------------------------------------------ kernels


def source(block: Block) -> Source:
    """The block's text; a fragment inside its kernel."""
    text = block.text
    if block.marks.get("fragment", "context") != "context":
        head = before(block, "declarations").text if block.marks["fragment"] else ""
        kernel = next(b for b in BLOCKS[block.path] if b.marks.get("fragment") == "context").text
        text = head + kernel.replace("    ...\n", textwrap.indent(text, "    "))
    return Source(NAME, text)


def problems(block: Block) -> tuple[Diagnostic, ...]:
    """What the compiler says about a block."""
    job = driver.Job(source(block), options=Options(arch=block.marks.get("arch", "sm_90a")))
    try:
        if "declarations" in block.marks:
            return check(job)
        return driver.compiled(job).warnings
    except CompileError as problem:
        return problem.diagnostics


@by_name("mojo")
def test_kernel(block: Block) -> None:
    found = problems(block)
    said = "\n\n".join(d.render(False) for d in found)
    assert [d.code for d in found] == block.marks.get("expect", "").split(), f"{block.name}:\n{said}"


@pytest.mark.parametrize("block", [pytest.param(b, id=b.name) for b in said("mojo")])
def test_shown_diagnostics(block: Block) -> None:
    said = "\n\n".join(d.render(False) for d in problems(before(block, "expect")))
    assert block.text.rstrip("\n") == said


@pytest.mark.parametrize("block", [pytest.param(b, id=b.name) for b in blocks("text") if "in" in b.marks])
def test_quotations(block: Block) -> None:
    quoted = (ROOT / block.marks["in"]).read_text(encoding="utf-8").splitlines()
    assert_shown([ANYTHING, *block.text.splitlines(), ANYTHING], quoted, block.name)


# ------------------------------------------------------------------------------------------------------------ commands


def assert_shown(shown: list[str], said: list[str], where: str) -> None:
    """Whether what a document shows is what was said, white space apart; ``…`` stands for lines, or a line's rest."""
    pattern = ""
    for line in (" ".join(s.split()) for s in shown):
        if line == ANYTHING:
            pattern += r"(?:.*\n)*?"
        elif line.endswith(ANYTHING):
            pattern += re.escape(line.removesuffix(ANYTHING).rstrip()) + r".*\n"
        else:
            pattern += re.escape(line) + r"\n"
    text = "".join(" ".join(s.split()) + "\n" for s in said)
    if not re.fullmatch(pattern, text):
        pytest.fail(f"{where}: what was said is not what is shown, but\n{text[:4000]}", pytrace=False)


def run(words: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """A ``ptxdsl`` command in this process: its exit code, what it wrote."""
    if "cubin" in words or "sass" in words:
        try:
            find_tool("ptxas"), find_tool("nvdisasm")
        except CompileError:
            pytest.skip("ptxas and nvdisasm are not installed")
    capsys.readouterr()
    code = cli.main(words)
    captured = capsys.readouterr()
    return code, captured.out + captured.err


@pytest.fixture
def beside_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the repository's samples, the current one."""
    (tmp_path / "samples").mkdir()
    for sample in (ROOT / "samples").glob("*.pdsl"):
        (tmp_path / "samples" / sample.name).write_bytes(sample.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_files(block: Block, folder: Path) -> None:
    """The blocks of the document that are files."""
    for named in BLOCKS[block.path]:
        if "file" in named.marks:
            (folder / named.marks["file"]).write_text(named.text)


@by_name("console")
def test_console(block: Block, beside_samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_files(block, beside_samples)
    sessions = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert sessions[0] == "", f"{block.name} begins with a command"
    for session in sessions[1:]:
        command, *shown = session.splitlines()
        words = shlex.split(command)
        assert words[0] == "ptxdsl", f"{block.name}: {command}"
        code, said = run(words[1:], capsys)
        if shown:
            assert_shown(shown, said.splitlines(), block.name)
    assert code == int(block.marks.get("exit", "0"))


@by_name("sh")
def test_sh(block: Block, beside_samples: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in re.split(r"\n| && ", block.text.strip()):
        words = shlex.split(command.replace(".venv/bin/", ""), comments=True)
        if words and words[0] == "ptxdsl":
            assert run(words[1:], capsys)[0] == 0, command
            continue
        line = " ".join(words)
        assert not words or line.startswith(FOREIGN_COMMANDS), f"{block.name}: {command}"
        if "benchmarks/" in line:
            assert (ROOT / words[1]).is_file(), command


# ------------------------------------------------------------------------------------------------------------- Python


def gpu() -> bool:
    try:
        current_driver()
    except LaunchError:
        return False
    return True


def launches(statement: ast.stmt) -> list[ast.expr]:
    """The kernels that a statement launches on the GPU: ``k`` of ``k[grid, block](…)``."""
    return [
        node.func.value
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Subscript)
        and not any(k.arg == "target" for k in node.keywords)
    ]


def needs_gpu(statement: ast.stmt, missing: set[str]) -> bool:
    names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
    names |= {n.attr for n in ast.walk(statement) if isinstance(n, ast.Attribute)}  # ptxdsl.torch
    modules = {a.name for n in ast.walk(statement) if isinstance(n, ast.Import) for a in n.names}
    return bool(launches(statement) or (names | modules) & missing)


@by_name("python")
def test_python(block: Block, beside_samples: Path, recwarn: pytest.WarningsRecorder) -> None:
    """The block runs; without a GPU its launches are compiled, and the rest of what needs one is left out.

    The README's block, whose arrays are the reader's, is compiled in any case.
    """
    (kernel,) = (b for b in blocks("mojo") if b.path.name == "README.md")
    (beside_samples / "copy.pdsl").write_text(kernel.text)
    write_files(block, beside_samples)
    names: dict[str, Any] = {"ptxdsl": ptxdsl}
    if "import torch\n" in block.text and find_spec("torch") and gpu():
        exec(compile(block.text, block.name, "exec"), names)
        return
    missing = {"torch", "cupy", "src", "res"}  # arrays on a GPU
    left_out = []
    for statement in ast.parse(block.text).body:
        if not needs_gpu(statement, missing):
            exec(compile(ast.Module([statement], []), block.name, "exec"), names)
            continue
        for launched in launches(statement):
            eval(compile(ast.Expression(launched), block.name, "eval"), names).compile()
        missing |= {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        left_out.append(block.line + statement.lineno)
    if left_out:
        pytest.skip(f"compiled; lines {', '.join(map(str, left_out))} need arrays on a GPU (tests/device launches)")


# -------------------------------------------------------------------------------------------------------------- names

PATHS = re.compile(r"`((?:ptxdsl|stdlib|grammar|samples|tests|benchmarks)/[\w./]*\w/?)`")
LINKS = re.compile(r"\]\(([^)\s]+)\)")


def prose(path: Path) -> str:
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("path", BLOCKS, ids=lambda path: path.name)
def test_paths_exist(path: Path) -> None:
    missing = [name for name in PATHS.findall(prose(path)) if not (ROOT / name).exists()]
    assert missing == []


def anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("path", BLOCKS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in LINKS.findall(re.sub(r"`[^`]*`", "", prose(path))):
        if "://" in target:
            continue
        name, _, fragment = target.partition("#")
        file = path.parent / name if name else path
        assert file.is_file(), target
        if fragment:
            headings = re.findall(r"^#+ (.+)$", prose(file), flags=re.MULTILINE)
            assert fragment in map(anchor, headings), target


def test_codes_exist() -> None:
    from ptxdsl.explanations import EXPLANATIONS

    named = {code for path in BLOCKS for code in re.findall(r"\b[EW]\d{4}\b", prose(path))}
    assert sorted(named - EXPLANATIONS.keys()) == []


# ------------------------------------------------------------------------------------------------------------ figures


def test_limits_are_those_of_the_compiler() -> None:
    from ptxdsl.elaborate import context, kernels, loops, operators, variadic
    from ptxdsl.files import text_files
    from ptxdsl.syntax import limits

    shown: dict[str, list[int]] = {}
    section = (ROOT / "docs" / "language.md").read_text(encoding="utf-8").partition("## Limits")[2].partition("##")[0]
    for limit, code in re.findall(r"^\|[^|]*\| ([\d ]+)[^|]*\| ([EW]\d{4}) \|$", section, flags=re.MULTILINE):
        shown.setdefault(code, []).append(int(limit.replace(" ", "")))
    constants = {
        "E0108": [limits.MAX_DEPTH],
        "E0220": [kernels.MAX_PARAMETER_BYTES],
        "E0303": [operators.MAX_LITERAL_BITS],
        "E0344": [variadic.MAX_PRINTED],
        "E0403": [context.MAX_STEPS, loops.MAX_UNROLL],
        "E0404": [context.MAX_OPS],
        "E0406": [context.MAX_DEPTH],
        "E1003": [text_files.SIZE_LIMIT >> 20],
    }
    assert {code: shown[code] for code in constants} == constants
    assert f"a statement is one, a call {context.CALL_STEPS} |" in section


def test_ring_figures_are_those_of_the_plan() -> None:
    from ptxdsl.rings import plan as ring_plan

    text = (ROOT / "docs" / "role_pipeline.md").read_text(encoding="utf-8")
    assert f"at most {ring_plan.MAX_OPERATIONS} operations of the IR, {ring_plan.MAX_TWO_STAGES} for two stages" in text
    assert f"common multiple of their stages, up to {ring_plan.MAX_COMMON_STAGES}." in " ".join(text.split())
