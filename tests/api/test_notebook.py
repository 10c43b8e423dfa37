"""The extension in IPython: cells become modules, mistakes are shown at the cell's lines, without a traceback."""

import re

import numpy as np
import pytest

import ptxdsl

FILL = """\
@kernel(threads=32)
def fill(p: Pointer[Int32, MutAnyOrigin], value: Int32):
    p[unsafe_offset=thread_idx.x] = value
"""


@pytest.fixture
def run(ipython, capsys):
    """run(cell): what is shown of it."""
    ipython.reset()
    ipython.execution_count = 1

    def run(cell, fails=False):
        result = ipython.run_cell(cell, store_history=True)
        assert result.success is not fails
        return "".join(capsys.readouterr())

    run("%reload_ext ptxdsl")
    return run


def test_a_cell_is_a_module_of_a_name(run, ipython):
    assert run(f"%%pdsl filling\n{FILL}") == ""
    run("import numpy\na = numpy.zeros(32, numpy.int32)\nfilling.fill[1, 32](a, 7, target='sim')")
    assert (ipython.user_ns["a"] == 7).all()
    assert "fill" not in ipython.user_ns


def test_without_a_name_its_kernels_have_their_own(run, ipython):
    run(f"%%pdsl\n{FILL}\n\ndef helper() -> Int32:\n    return 1\n")
    assert isinstance(ipython.user_ns["fill"], ptxdsl.Kernel) and "helper" not in ipython.user_ns


def test_parameters_of_a_kernel_are_given_later(run, ipython):
    assert run("%%pdsl m\n@kernel\ndef fill[n: Int](p: Pointer[Int32, MutAnyOrigin]):\n    p[] = Int32(n)\n") == ""
    out = np.zeros(1, np.int32)
    ipython.user_ns["m"].fill.specialize(n=3)[1, 1](out, target="sim")
    assert out[0] == 3


def test_a_cell_that_is_run_again_takes_its_place(run, ipython):
    run(f"%%pdsl filling\n{FILL}")
    first = ipython.user_ns["filling"]
    run(f"%%pdsl filling\n{FILL.replace('= value', '= value + 1')}")
    out = np.zeros(32, np.int32)
    ipython.user_ns["filling"].fill[1, 32](out, 7, target="sim")
    assert (out == 8).all()
    first.fill[1, 32](out, 7, target="sim")
    assert (out == 7).all()


def test_mistakes_are_shown_at_the_cells_lines(run, ipython):
    """The line of the magic is the first."""
    run(f"%%pdsl filling\n{FILL}")
    shown = run(f"%%pdsl filling\n{FILL.replace('= value', '= valeu')}", fails=True)
    assert shown == (
        "error[E0201]: unknown name `valeu`\n"
        " --> In[3]:4:37\n"
        "  |\n"
        "4 |     p[unsafe_offset=thread_idx.x] = valeu\n"
        "  |                                     ^^^^^\n"
        "  = help: did you mean `value`?\n"
    )
    assert ipython.user_ns["filling"].fill  # as it was


def test_every_mistake_of_a_cell_is_shown(run):
    shown = run("%%pdsl\ndef f() -> Int32:\n    return a\n\ndef g() -> Int32:\n    return b\n", fails=True)
    assert re.findall(r"In\[2\]:\d+", shown) == ["In[2]:3", "In[2]:6"]


def test_findings_of_the_checker_are_shown_and_do_not_stop_it(run, ipython):
    """A kernel that deadlocks can be looked at in the simulator."""
    shown = run("""\
%%pdsl stuck
@kernel(threads=32)
def stuck():
    var bar = unsafe_stack_allocation[1, SharedMemBarrier, address_space=.SHARED, alignment=8]()
    if thread_idx.x == 0:
        bar[].init(2)
    barrier()
    _ = bar[].arrive() if thread_idx.x == 0 else 0
    bar[].wait(0)
""")
    assert "In[2]:9" in shown and "E12" in shown
    assert ipython.user_ns["stuck"].kernels == ("stuck",)


def test_mistakes_of_a_launch_point_into_the_cell(run):
    run(f"%%pdsl filling\n{FILL}")
    shown = run("import numpy\nfilling.fill[1, 32](numpy.zeros(32), 7, target='sim')", fails=True)
    assert "argument 'p' of kernel 'fill'" in shown and "--> In[2]:3:10" in shown


def test_options(run, ipython):
    run(f"%%pdsl filling --lineinfo --no-contract --wait=probe --ptx-version 8.6 --arch sm_80\n{FILL}")
    ptx = ipython.user_ns["filling"].fill.compile().ptx
    assert "--lineinfo" in ptx and "--no-contract" in ptx and ".version 8.6" in ptx
    assert "\t.loc\t1 4 " in ptx
    shown = run("%%pdsl --arch sm_80\nfrom tma import *\n\ndef k():\n    fence_proxy_async()\n", fails=True)
    assert "sm_80" in shown and "In[3]" in shown


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (f"%%pdsl a --lineinf\n{FILL}", "%%pdsl: unrecognized arguments: --lineinf"),
        (f"%%pdsl a b\n{FILL}", "%%pdsl: unrecognized arguments: b"),
        (f"%%pdsl a --wait=never\n{FILL}", "%%pdsl: argument --wait: invalid choice: 'never'"),
        (f"%%pdsl a --ptx-version x\n{FILL}", "%%pdsl: argument --ptx-version: 'x' is not a PTX version"),
        (f"%%pdsl 3a\n{FILL}", "%%pdsl: '3a' is not a Python name"),
        (f"%%pdsl class\n{FILL}", "%%pdsl: 'class' is not a Python name"),
        (f"%%pdsl 'a\n{FILL}", "%%pdsl: No closing quotation"),
        ("%%pdsl a\n# nothing", "%%pdsl: the cell has no def to be a kernel"),
    ],
)
def test_a_mistaken_magic_is_a_diagnostic(run, cell, words):
    shown = run(cell, fails=True)
    assert shown.startswith(f"error[E1040]: {words}") and "Traceback" not in shown
    assert len(shown.splitlines()) <= 2


def test_help(run):
    for cell in ("%pdsl", "%pdsl --help", f"%%pdsl --help\n{FILL}"):
        shown = run(cell)
        assert shown.startswith("usage: %%pdsl") and "--lineinfo" in shown and "NAME" in shown


def test_colors(run, ipython):
    ipython.colors = "linux"
    try:
        assert "\x1b[1;31merror[E0201]\x1b[0m" in run("%%pdsl\ndef f() -> Int32:\n    return a\n", fails=True)
    finally:
        ipython.colors = "nocolor"


def test_a_text_in_a_cell_has_its_lines(run):
    shown = run('text = """\n@kernel\ndef k(p: Pointer[Int32, MutAnyOrigin]):\n    p[] = nothing\n"""\n'
                "import ptxdsl\nptxdsl.loads(text).k.compile()", fails=True)  # fmt: skip
    assert " --> In[2]:4:11\n" in shown


def shown_as(ipython, value):
    data, _ = ipython.display_formatter.format(value)
    return data["text/plain"], data.get("text/html", "")


def test_what_is_shown_of_values(run, ipython):
    run(f"%%pdsl filling\n{FILL}")
    fill = ipython.user_ns["filling"].fill
    assert shown_as(ipython, ipython.user_ns["filling"])[0] == "<ptxdsl module 'In[2]': fill>"
    plain, page = shown_as(ipython, fill.compile("sm_80"))
    assert re.fullmatch(r"<ptxdsl PTX of fill for sm_80: \d+ lines>", plain)
    assert "<code>fill(p, value)</code>" in page and ".visible .entry fill(" in page
    out = np.zeros(32, np.int32)
    plain, page = shown_as(ipython, fill.simulate(out, 7))
    assert plain.startswith("<ptxdsl report: kernel 'fill' finished, ") and "finished" in page and "iframe" not in page
    _, page = shown_as(ipython, fill.simulate(out, 7, trace=True))
    assert "<iframe" in page and "&lt;title&gt;kernel fill" in page
    _, page = shown_as(ipython, fill.simulate(out[:3], 7))
    assert "In[2]:4:5" in page and "fault" in page


def test_unloading(run, ipython):
    run("%unload_ext ptxdsl")
    assert "not found" in run(f"%%pdsl a\n{FILL}", fails=True)
    assert shown_as(ipython, ptxdsl.loads(FILL).fill.compile())[1] == ""
