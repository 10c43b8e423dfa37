"""The options of ``@kernel``, and what they and a kernel's body make of its signature."""

from __future__ import annotations

from math import prod

from ptxdsl import tir
from ptxdsl.elaborate import types
from ptxdsl.elaborate.builtins import HANDLERS, STATIC_SHARED, Builtins
from ptxdsl.elaborate.convert import items_of
from ptxdsl.elaborate.entities import NONE_VALUE, FunctionDecl, Runtime, RValue
from ptxdsl.elaborate.matching import Bound
from ptxdsl.elaborate.scope import Scope
from ptxdsl.elaborate.suggestions import meant
from ptxdsl.elaborate.values import const
from ptxdsl.elaborate.variadic import Variadics
from ptxdsl.signature import KernelSignature, Param
from ptxdsl.syntax import ast
from ptxdsl.targets import shared_bytes

KERNEL_OPTIONS = ("name", "max_threads", "min_blocks", "cluster", "max_registers", "threads", "wait")
MAX_THREADS, MAX_THREADS_Z = 1024, 64  # of a block
NO_SYMBOLS = frozenset({"WARP_SZ", "_", "$"})  # what PTX has made its own of names that look like a kernel's


class KernelOptions(Variadics):
    """From ``@kernel(…)`` to the PTX name and the launch attributes."""

    def kernel_symbol(self, decl: FunctionDecl, scope: Scope, constants: tuple[tuple[str, str], ...]) -> str:
        """The PTX name: the kernel's own and its parameters' values, in letters that PTX allows."""
        option = self._options(decl).get("name")
        if option is not None:
            text = self.comptime_value(option, scope)
            name = getattr(text, "value", None)
            legal = isinstance(name, str) and name.isascii() and name.replace("$", "_").isidentifier()
            if not isinstance(name, str) or not legal or name in NO_SYMBOLS:
                raise self.fail(
                    "E0224", "`name` must be a PTX identifier", option.span, help="letters, digits, _ and $"
                )
            return name
        letters = ["".join(c if c.isascii() and c.isalnum() else " " for c in text) for _, text in constants]
        suffix = "".join(f"_{'_'.join(text.split())}" for text in letters)
        ascii_name = "".join(c if c.isascii() and (c.isalnum() or c in "_$") else f"u{ord(c):x}" for c in decl.name)
        symbol = ascii_name + suffix
        return f"{symbol}_" if symbol in NO_SYMBOLS else symbol

    def _options(self, decl: FunctionDecl) -> dict[str, ast.Expr]:
        decorator = decl.decorator("kernel")
        result: dict[str, ast.Expr] = {}
        for argument in (decorator.args or ()) if decorator else ():
            if argument.name not in KERNEL_OPTIONS:
                if argument.name is None:
                    raise self.fail(
                        "E0225", "the options of `@kernel` are given by name", argument.span,
                        help=f"the options are {', '.join(KERNEL_OPTIONS)}",
                    )  # fmt: skip
                raise self.fail(
                    "E0225", f"`@kernel` has no option `{argument.name}`", argument.span,
                    help=meant(argument.name, KERNEL_OPTIONS) or f"the options are {', '.join(KERNEL_OPTIONS)}",
                )  # fmt: skip
            if argument.name in result:
                raise self.fail(
                    "E0225", f"option `{argument.name}` is given twice", argument.span, help="leave one of them out"
                )
            result[argument.name] = argument.value
        return result

    def threads_of(self, decl: FunctionDecl, scope: Scope) -> tuple[int, int, int] | None:
        """The block of ``@kernel(threads=…)``."""
        option = self._options(decl).get("threads")
        return None if option is None else self._shape(option, scope, "threads", MAX_THREADS)

    def kernel_signature(
        self, decl: FunctionDecl, scope: Scope, symbol: str, params: tuple[Param, ...], body: tir.Block,
        constants: tuple[tuple[str, str], ...],
    ) -> KernelSignature:  # fmt: skip
        options = self._options(decl)

        def shape(name: str, limit: int) -> tuple[int, int, int] | None:
            return self._shape(options[name], scope, name, limit) if name in options else None

        def number(name: str, low: int, high: int) -> int | None:
            if name not in options:
                return None
            value = self.comptime_int(self.comptime_value(options[name], scope), options[name].span)
            if not low <= value <= high:
                raise self.fail(
                    "E0226",
                    f"`{name}` is {low} to {high}, not {value}",
                    options[name].span,
                    help="leave it out to let the assembler decide",
                )
            return value

        threads, max_threads = self.kernel_threads, shape("max_threads", MAX_THREADS)
        min_blocks = number("min_blocks", 1, 32)
        if min_blocks is not None and threads is None and max_threads is None:
            raise self.fail(
                "E0226", "`min_blocks` needs `threads` or `max_threads` beside it", options["min_blocks"].span,
                help="the assembler ignores it otherwise",
            )  # fmt: skip
        if self.thread_count is not None and max_threads is not None and self.thread_count[0] > prod(max_threads):
            count, at = self.thread_count
            raise self.fail(
                "E0407", f"this is of blocks of {count} threads, and a block has at most {prod(max_threads)}", at,
                (options["max_threads"].span, "here"), help="give it a smaller block_size, or raise `max_threads`",
            )  # fmt: skip
        cluster = shape("cluster", 16)
        if cluster is not None:
            self.require("cluster", options["cluster"].span, "a cluster")
        shared = self._shared_bytes(body, decl)
        return KernelSignature(
            name=symbol, params=params, shared_bytes=shared, dynamic_shared=self.uses_dynamic_shared,
            dynamic_bytes=self.dynamic_shared[0] if self.dynamic_shared else None, cluster=cluster, threads=threads,
            max_threads=max_threads, thread_count=None if self.thread_count is None else self.thread_count[0],
            min_blocks=min_blocks, max_registers=number("max_registers", 16, 255),
            wait=self._wait(options.get("wait"), scope), ring_unroll=decl.decorator("no_ring_unroll") is None,
            source_name=decl.name, constants=constants,
        )  # fmt: skip

    def _shared_bytes(self, body: tir.Block, decl: FunctionDecl) -> int:
        """Static shared memory: allocations one after the other, each aligned."""
        total = 0
        for op in tir.walk(body):
            if op.name == "shared.alloc":
                total = -(-total // op.attrs["align"]) * op.attrs["align"] + op.attrs["bytes"]
        if total > STATIC_SHARED:
            raise self.fail(
                "E0613", f"kernel `{decl.name}` has {total:,} bytes of static shared memory", decl.node.name_span,
                help=f"the limit is {STATIC_SHARED:,}; use external_memory[…]() and the launch's smem= for more",
            )  # fmt: skip
        dynamic, span = self.dynamic_shared or (0, decl.node.name_span)
        most = shared_bytes(self.target.capability)
        if total + dynamic > most:
            raise self.fail(
                "E0618",
                f"kernel `{decl.name}` uses {total + dynamic:,} bytes of shared memory, {total:,} of them static", span,
                help=f"a block has {most:,} bytes on {self.target.name}",
            )  # fmt: skip
        return total

    def _shape(self, node: ast.Expr, scope: Scope, name: str, limit: int) -> tuple[int, int, int]:
        value = self.comptime_value(node, scope)
        items = items_of(value) or (value,)
        numbers = [self.comptime_int(i, node.span) for i in items]
        product = 1
        for n in numbers:
            product *= n
        if not 1 <= len(numbers) <= 3 or min(numbers) < 1 or product > limit:
            raise self.fail(
                "E0226",
                f"`{name}` is a shape of at most {limit:,} {'CTAs' if name == 'cluster' else 'threads'}, "
                f"not {' x '.join(map(str, numbers))}",
                node.span, help=f"write one to three numbers: `{name}=4`, `{name}=(2, 2)`",
            )  # fmt: skip
        x, y, z = [*numbers, 1, 1][:3]
        if name != "cluster" and z > MAX_THREADS_Z:
            help = "a block has more threads in x and y"
            raise self.fail(
                "E0226", f"`{name}` has at most {MAX_THREADS_Z} threads in z, not {z}", node.span, help=help
            )
        return x, y, z

    def _wait(self, node: ast.Expr | None, scope: Scope) -> str | None:
        if node is None:
            return None
        text = getattr(self.comptime_value(node, scope), "value", None)
        if text not in ("try", "probe"):
            raise self.fail("E0226", '`wait` is "try" or "probe"', node.span, help="leave it out for what --wait says")
        return str(text)


def _kernel_threads(e: Builtins, bound: Bound) -> Runtime:
    """Of a block, 0 where the kernel does not say."""
    return const(types.INT, prod(e.kernel_threads) if e.kernel_threads else 0)


def _expect_threads(e: Builtins, bound: Bound) -> RValue:
    count = e.param_int(bound, "count")
    if e.thread_count is not None and e.thread_count[0] != count:
        raise e.fail(
            "E0407", f"this is of blocks of {count} threads", bound.span,
            (e.thread_count[1], f"this of blocks of {e.thread_count[0]}"),
            help="a kernel has blocks of one size: give both the same block_size",
        )  # fmt: skip
    e.thread_count = count, e.at(bound.span)
    return NONE_VALUE


HANDLERS.update({"kernel_threads": _kernel_threads, "expect_threads": _expect_threads})
