"""The library's scopes are kept from one program to the next; no program sees another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from elaborate_support import diagnostics, typed

from ptxdsl.elaborate import library
from ptxdsl.options import Options
from ptxdsl.tir import Module
from ptxdsl.tir.printer import tir_text

HUNDRED_A = Options(arch="sm_100a")


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    library._kept.clear()
    yield
    library._kept.clear()


def kernel(field: str) -> str:
    """A struct of the program's own in generic code of the library."""
    return f"""
        @fieldwise_init
        struct S(TrivialRegisterPassable):
            var value: {field}

        @kernel
        def k(res: Pointer[{field}, MutAnyOrigin], n: Int32):
            var s = S({field}(n))
            var other = s.value
            swap(s.value, other)
            var all = Array[S, 2](fill=s)
            res[unsafe_offset=Int32(size_of[S]())] = all[1].value + {field}(thread_idx.x)
    """


WRONG = "@kernel\ndef k(n: Int32):\n    var x = thread_idx.w\n"


def test_a_library_is_used_again() -> None:
    typed(kernel("Int32"))
    (kept,) = library._kept.values()
    typed(kernel("Int32"))
    assert library._kept == {HUNDRED_A: kept} and kept.uses == 2


def test_the_second_program_is_as_if_it_were_the_first() -> None:
    def text(module: Module) -> str:
        return tir_text(module)

    alone = text(typed(kernel("Int64")))
    library._kept.clear()
    typed(kernel("Int32"))
    assert text(typed(kernel("Int64"))) == alone


def test_nothing_is_kept_of_a_program_in_error() -> None:
    for _ in range(2):
        assert [d.code for d in diagnostics(WRONG)] == ["E0407"]
        assert library._kept == {}
        typed(kernel("Int32"))


def test_targets_do_not_share_one() -> None:
    cluster = "@kernel\ndef k(res: Pointer[Int32, MutAnyOrigin]):\n    res[unsafe_offset=0] = Int32(cluster_idx.x)\n"
    typed(cluster)
    assert [d.code for d in diagnostics(cluster, arch="sm_80")] == ["E0701"]


def test_a_library_is_left_behind_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_MOST_USES", 2)
    typed(kernel("Int32"))
    assert HUNDRED_A in library._kept
    typed(kernel("Int32"))
    assert library._kept == {}


def test_libraries_kept_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_MOST_KEPT", 1)
    typed(kernel("Int32"))
    typed(kernel("Int32"), arch="sm_90a")
    assert list(library._kept) == [Options(arch="sm_90a")]
