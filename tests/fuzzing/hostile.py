# ruff: noqa: E501  (programs are data)
"""Programs written against the compiler: endless, enormous, deeply nested, oddly named."""

from __future__ import annotations

import random

from cases import ARCHS, Case

BODY = "    p[] = 0\n"
KERNEL = "@kernel\ndef k(p: Pointer[Int32, MutAnyOrigin], n: Int32):\n"
NAMES = (
    "ret", "add", "mov", "bra", "WARP_SZ", "reg", "ptr", "entry", "func", "param", "const", "global", "shared", "local", "tid",
    "r1", "rd1", "p1", "B32", "u32", "f32", "pred", "call", "exit", "kernel", "k0", "sqrt", "exp", "memcpy", "memset", "main",
    "malloc", "free", "vprintf", "printf", "__assertfail", "llvm", "nvvm", "_", "__", "___x", "_Z1kv", "a" * 300, "a" * 5000, "é", "名",
    "x__", "barrier", "print", "min", "range", "Int", "Int32", "SIMD", "DType", "Pointer", "self", "Self", "type", "read", "mut",
    "where", "raises", "kernel_param_0", "extern", "visible", "align", "version", "target", "i1", "void", "double", "label",
    "laneid", "clock", "envreg3", "pm0", "sinf", "__nv_sin", "true", "false", "null", "undef", "thread_idx", "RolePipeline",
    "STAGES", "prmt", "wgmma", "tcgen05", "mbarrier", "bar", "vote", "T", "n", "p",
)  # fmt: skip
HUGE = (
    "2**100000", "10**100000", "1" + "0" * 100_000, "0x" + "f" * 50_000, "1e999999999", "1e5000", "0." + "1" * 5000, "2**16383",
    "-2**63", "2**64", "1 << 100000", "1 << 10**9", "(2**5000) ** 3", "3**4000 * 3**4000", "1e-5000", "7 // 0", "7 % 0", "7 / 0",
    "2**-1", "(-2)**3", "0**0", "1.5**2", "1 << -1", "9" * 5000, "1e308 * 10", "2.0**1024", "(1/3) * 3",
)  # fmt: skip


def _nested(rng: random.Random) -> str:
    n = rng.choice((10, 60, 150, 250, 1000, 20_000))
    forms = (
        lambda: KERNEL + "    p[] = " + "(" * n + "n" + ")" * n,
        lambda: KERNEL + "    p[] = " + "-" * n + "n",
        lambda: KERNEL + "    var b = " + "not " * n + "(n == 0)\n    p[] = 1 if b else 2",
        lambda: KERNEL + "    p[] = " + "n + " * n + "n",
        lambda: KERNEL + "    p[] = " + "n if n > 0 else " * n + "n",
        lambda: KERNEL + "    p[] = n" + ".x" * n,
        lambda: KERNEL + "    p[] = n" + "[0]" * n,
        lambda: KERNEL + "    p[] = n" + "()" * n,
        lambda: KERNEL + "    var x: " + "Array[" * n + "Int32" + ", 1]" * n + "\n" + BODY,
        lambda: KERNEL + "    var x: " + "Pointer[" * n + "Int32" + "]" * n + "\n" + BODY,
        lambda: KERNEL + "    var x = " + "(" * n + "n" + ",)" * n + "\n" + BODY,
        lambda: KERNEL + "    p[] = " + "abs(" * n + "n" + ")" * n,
        lambda: KERNEL + "    p[] = " + "min(n, " * n + "n" + ")" * n,
        lambda: KERNEL + "    p[] = n" + " ** 2" * n,
        lambda: KERNEL + "".join("    " * (i + 1) + f"if n > {i}:\n" for i in range(min(n, 1000))) + "    " * (min(n, 1000) + 1) + "p[] = 1",
        lambda: KERNEL + "".join("    " * (i + 1) + f"for i{i} in range(n):\n" for i in range(min(n, 150))) + "    " * (min(n, 150) + 1) + "p[] = 1",
        lambda: KERNEL + "".join("    " * (i + 1) + "while n > 0:\n" for i in range(min(n, 60))) + "    " * (min(n, 60) + 1) + "break",
        lambda: KERNEL + "    if n == 0:\n        pass\n" + "".join(f"    elif n == {i}:\n        p[] = {i}\n" for i in range(min(n, 1000))),
        lambda: "[" * n, lambda: "(" * n + "\n", lambda: ")" * n, lambda: "\n".join(" " * i + "if x:" for i in range(min(n, 1000))),
        lambda: KERNEL + "    var b = n == 0" + " and n == 1 or n == 2" * n + "\n" + BODY,
        lambda: KERNEL + "    var b = 0 < n" + " < n" * n + "\n" + BODY,
        lambda: '"""' * n, lambda: "@kernel\n" * n + KERNEL[8:] + BODY, lambda: KERNEL + "    x = " * n + "1",
    )  # fmt: skip
    return rng.choice(forms)()


def _endless(rng: random.Random) -> str:
    n = rng.choice((100, 4096, 5000, 100_000, 10**9, 10**30))
    return rng.choice((
        KERNEL + f"    comptime for i in range({n}):\n        p[i] = Int32(i)\n",
        KERNEL + f"    comptime for i in range({n}):\n        pass\n",
        KERNEL + f"    comptime for i in range({n}):\n        comptime for j in range({n}):\n            p[i] += n\n",
        KERNEL + f"    comptime for i in range({n}, 0, -1):\n        if n == i:\n            break\n        p[] += n * n\n",
        f"def f(x: Int) -> Int:\n    var s = 0\n    for i in range({n}):\n        s += i\n    return s + x\ncomptime A = f(3)\n" + KERNEL + "    p[] = Int32(A)\n",
        "def f(x: Int) -> Int:\n    while True:\n        pass\n    return x\ncomptime A = f(3)\n" + KERNEL + "    p[] = Int32(A)\n",
        "def f(x: Int) -> Int:\n    return f(x) + 1\ncomptime A = f(3)\n" + KERNEL + "    p[] = Int32(A)\n",
        "def f(x: Int32) -> Int32:\n    return f(x) + f(x)\n" + KERNEL + "    p[] = f(n)\n",
        "def f(x: Int32) -> Int32:\n    return g(x)\ndef g(x: Int32) -> Int32:\n    return f(x)\n" + KERNEL + "    p[] = f(n)\n",
        "def f[i: Int](x: Int32) -> Int32:\n    comptime if i == 0:\n        return x\n    else:\n        return f[i - 1](x) + f[i - 1](x)\n" + KERNEL + f"    p[] = f[{min(n, 120)}](n)\n",
        "def f[i: Int](x: Int32) -> Int32:\n    comptime if i == 0:\n        return x\n    else:\n        return f[i - 1](x) * 3\n" + KERNEL + f"    p[] = f[{n}](n)\n",
        "comptime A = B\ncomptime B = A\n" + KERNEL + "    p[] = A\n",
        "comptime A = A + 1\n" + KERNEL + "    p[] = A\n",
        "comptime F[n: Int] = F[n + 1]\n" + KERNEL + "    p[] = F[0]\n",
        "comptime F[n: Int]: Int = 1 if n == 0 else F[n - 1] + F[n - 1]\n" + KERNEL + f"    p[] = Int32(F[{min(n, 90)}])\n",
        "struct S:\n    var s: S\n" + KERNEL + "    var x: S\n" + BODY,
        "struct S[n: Int]:\n    var s: S[Self.n + 1]\n" + KERNEL + "    var x: S[0]\n" + BODY,
        "struct S[T: AnyType]:\n    var s: Pointer[S[S[Self.T]], MutAnyOrigin]\n" + KERNEL + "    var x: S[Int32]\n" + BODY,
        "struct A:\n    var b: B\nstruct B:\n    var a: A\ndef f(a: A):\n    pass\n" + KERNEL + "    var x: A\n" + BODY,
        "struct S:\n    comptime X = Self.X\n" + KERNEL + "    p[] = S.X\n",
        "struct S:\n    comptime X = Self.Y + 1\n    comptime Y = Self.X\n    var a: Array[Int32, Self.X]\n" + KERNEL + "    var x: S\n" + BODY,
        "struct S(TrivialRegisterPassable):\n    var x: Int32\n    def __init__(out self):\n        self = S()\n" + KERNEL + "    p[] = S().x\n",
        "@fieldwise_init\nstruct S(TrivialRegisterPassable):\n    var x: Int32\n    def __add__(self, o: Self) -> Self:\n        return self + o\n" + KERNEL + "    p[] = (S(n) + S(n)).x\n",
        "@fieldwise_init\nstruct S(TrivialRegisterPassable):\n    var x: Int32\n    def __getattr__[name: StaticString](self) -> Int32:\n        return self.y\n" + KERNEL + "    p[] = S(n).z\n",
        "def f[T: AnyType](x: T) -> Int32:\n    return f[Pointer[T]](rebind[Pointer[T]](x))\n" + KERNEL + "    p[] = f(n)\n",
        "def f(x: Int = f()) -> Int:\n    return x\n" + KERNEL + "    p[] = Int32(f())\n",
        "def f[x: Int = f()]() -> Int:\n    return x\n" + KERNEL + "    p[] = Int32(f())\n",
        "def f() where f(): pass\n" + KERNEL + "    f()\n",
        "struct S[n: Int] where S[n].ok:\n    comptime ok = True\n" + KERNEL + "    var s: S[1]\n" + BODY,
        "struct S(TrivialRegisterPassable):\n    var x: Int32\n    @implicit\n    def __init__(out self, x: S):\n        self.x = 1\n    @implicit\n    def __init__(out self, x: Int32):\n        var s: S = x\n        self.x = s.x\n" + KERNEL + "    var s: S = n\n    p[] = s.x\n",
        KERNEL + "    while True:\n        pass\n", KERNEL + "    while True:\n        p[] = 1\n        break\n    else:\n        p[] = 2\n",
        KERNEL + "    for i in range(0, 10, 0):\n        pass\n", KERNEL + f"    for i in range(0, {n}, {n}):\n        p[] = Int32(i)\n",
        KERNEL + "    def g(x: Int32) -> Int32:\n        return g(x)\n    p[] = g(n)\n",
    ))  # fmt: skip


def _enormous(rng: random.Random) -> str:
    n = rng.choice((0, 1, 3, 16, 256, 257, 512, 2048, 2049, 65536, 2**31, 2**63, 2**64, 10**30, -1))
    m = rng.choice((100, 1000, 5000))
    return rng.choice((
        KERNEL + f"    var x = SIMD[DType.int32, {n}](n)\n    p[] = x[0]\n",
        KERNEL + f"    var x = SIMD[DType.{rng.choice(('int8', 'float64', 'bool', 'float16', 'float8_e5m2'))}, {rng.choice((1, 2, 16, 64, 128, 256))}](1)\n    p[] = Int32(x[n])\n",
        KERNEL + f"    var x = Array[Int32, {n}](fill=n)\n    p[] = x[0]\n",
        KERNEL + f"    var x = Array[Int32, {n}](fill=n)\n    p[] = x[n]\n",
        KERNEL + f"    var x = Array[Array[Int32, 2048], {n}](fill=Array[Int32, 2048](fill=n))\n    x[n][n] = 1\n    p[] = x[0][0]\n",
        KERNEL + f"    var x = Array[SIMD[DType.float64, 256], {n}](fill=1.5)\n    p[] = Int32(x[n][n])\n",
        KERNEL + f"    var x = Array[Int32, {min(n, 2048)}](fill=n)\n    for i in range(n):\n        x[0] += 1\n        x[i] = i\n    p[] = x[0]\n",
        KERNEL + f"    var x = unsafe_stack_allocation[{n}, Int32, address_space=.SHARED]()\n    x[unsafe_offset=n] = n\n    p[] = x[]\n",
        KERNEL + f"    var x = unsafe_stack_allocation[{n}, Int32]()\n    x[unsafe_offset=n] = n\n    p[] = x[]\n",
        KERNEL + f"    var x = unsafe_stack_allocation[4, Int32, address_space=.SHARED, alignment={n}]()\n    x[unsafe_offset=n] = n\n    p[] = x[]\n",
        KERNEL + f"    var x = external_memory[Int32, address_space=.SHARED, alignment={n}]()\n    x[unsafe_offset=n] = n\n    p[] = x[]\n",
        KERNEL + f"    p[unsafe_offset={n}] = n\n    p[n + {n}] = n\n",
        KERNEL + f"    p.unsafe_store[alignment={n}](n, SIMD[DType.int32, 4](n))\n", KERNEL + f"    p[] = p.unsafe_load[width={n}](0)[0]\n",
        KERNEL + f"    named_barrier[{n}](n)\n", KERNEL + f"    nanosleep(UInt32({n}))\n", KERNEL + f"    warpgroup_reg_alloc[{n}]()\n",
        KERNEL + f"    p[] = shuffle_down(n, {n})\n", KERNEL + f"    cp_async_bulk_wait_group[{n}]()\n", KERNEL + f"    async_copy_wait_group[{n}]()\n",
        f"@kernel(threads={n})\n" + KERNEL[8:] + BODY, f"@kernel(max_threads={n}, min_blocks={n})\n" + KERNEL[8:] + BODY,
        f"@kernel(max_registers={n})\n" + KERNEL[8:] + BODY, f"@kernel(cluster=({n}, 1, 1))\n" + KERNEL[8:] + BODY,
        KERNEL + f"    var m = unsafe_stack_allocation[8, SharedMemBarrier, address_space=.SHARED]()\n    m[].init(Int32({n}))\n    m[].expect_bytes(Int32({n}))\n",
        KERNEL + f"    var m = unsafe_stack_allocation[8, SharedMemBarrier, address_space=.SHARED]().unsafe_origin_cast[MutAnyOrigin]()\n    var r = RolePipeline[{n}, True](m, m)\n    r.acquire()\n    r.commit()\n",
        KERNEL + "".join(f"    var v{i} = n + {i}\n" for i in range(m)) + f"    p[] = v{m - 1}\n",
        KERNEL + "    var s = n\n" + "".join(f"    s = s * n + {i}\n" for i in range(m)) + "    p[] = s\n",
        KERNEL + "    var s = n\n" + "".join(f"    if n > {i}:\n        s = s * 3 + n\n" for i in range(m)) + "    p[] = s\n",
        KERNEL + "".join(f"    p[{i}] = n + {i}\n" for i in range(m)),
        KERNEL + "    pass\n" * (m * 20), "# x\n" * (m * 20) + KERNEL + BODY, "x" * (m * 20), "comptime A = 1\n" * m + KERNEL + BODY,
        "".join(f"comptime A{i} = {i}\n" for i in range(m)) + KERNEL + f"    p[] = A{m - 1}\n",
        "comptime A0 = 1\n" + "".join(f"comptime A{i + 1} = A{i} + 1\n" for i in range(m)) + KERNEL + f"    p[] = A{m}\n",
        "comptime A0 = 3\n" + "".join(f"comptime A{i + 1} = A{i} * A{i}\n" for i in range(min(m, 100))) + KERNEL + f"    p[] = A{min(m, 100)}\n",
        "comptime A0 = 1.1\n" + "".join(f"comptime A{i + 1} = A{i} * A{i}\n" for i in range(min(m, 100))) + KERNEL + f"    p[] = Int32(A{min(m, 100)})\n",
        "def f0(x: Int32) -> Int32:\n    return x\n" + "".join(f"def f{i + 1}(x: Int32) -> Int32:\n    return f{i}(x) + 1\n" for i in range(min(m, 300))) + KERNEL + f"    p[] = f{min(m, 300)}(n)\n",
        "def f0(x: Int32) -> Int32:\n    return x\n" + "".join(f"def f{i + 1}(x: Int32) -> Int32:\n    return f{i}(x) * f{i}(x + 1)\n" for i in range(20)) + KERNEL + f"    p[] = f{rng.choice((8, 12, 20))}(n)\n",
        "".join(f"@kernel\ndef k{i}(p: Pointer[Int32, MutAnyOrigin]):\n    p[] = {i}\n" for i in range(min(m, 300))),
        "@kernel\ndef k(" + ", ".join(f"a{i}: Int32" for i in range(m)) + "):\n    pass\n",
        "struct S:\n" + "".join(f"    var a{i}: Int32\n" for i in range(m)) + KERNEL + "    var s: S\n" + BODY,
        "def f(" + ", ".join(f"a{i}: Int32" for i in range(m)) + ") -> Int32:\n    return a0\n" + KERNEL + "    p[] = f(" + ", ".join(["n"] * m) + ")\n",
        "".join(f"def f(x: Array[Int32, {i}]):\n    pass\n" for i in range(min(m, 1000))) + KERNEL + "    f(n)\n",
        KERNEL + '    print("' + "%d{}\\n" * m + '", n)\n', KERNEL + "    print(" + ", ".join(["n"] * m) + ")\n",
        KERNEL + f"    p[] = n ** {n}\n", KERNEL + "    p[] = n" + " * n" * min(m, 90) + "\n",
        KERNEL + "    var t = (" + "n, " * m + ")\n    p[] = t[3]\n", KERNEL + "    var t = [" + "n, " * m + "]\n    p[] = t[n]\n",
    ))  # fmt: skip


def _names(rng: random.Random) -> str:
    a, b = rng.choice(NAMES), rng.choice(NAMES)
    return rng.choice((
        f"@kernel\ndef {a}({b}: Pointer[Int32, MutAnyOrigin], n: Int32):\n    {b}[] = n\n",
        f'@kernel(name="{a}")\ndef k(p: Pointer[Int32, MutAnyOrigin]):\n' + BODY,
        f"@kernel\ndef {a}(p: Pointer[Int32, MutAnyOrigin]):\n    p[] = sqrt(Float32(2))\n    print(p[])\n    p[] = Int32(exp(Float32(p[])))\n",
        f"@kernel\ndef {a}({b}: Pointer[Int32, MutAnyOrigin], {b}: Int32):\n    {b}[] = 1\n",
        f"@kernel\ndef {a}(p: Pointer[Int32, MutAnyOrigin]):\n" + BODY + f"@kernel\ndef {b}(p: Pointer[Int32, MutAnyOrigin]):\n" + BODY,
        f"@kernel\ndef {a}(p: Pointer[Int32, MutAnyOrigin]):\n" + BODY + f'@kernel(name="{a}")\ndef {b}x(p: Pointer[Int32, MutAnyOrigin]):\n' + BODY,
        f"@kernel\ndef {a}[{b}: Int = 3](p: Pointer[Int32, MutAnyOrigin]):\n    p[] = Int32({b})\n",
        f"def {a}(x: Int32) -> Int32:\n    return x\n" + KERNEL + f"    p[] = {a}(n)\n",
        f"def {a}({b}: Int32) -> Int32:\n    var {a} = {b}\n    return {a}\n" + KERNEL + f"    p[] = {a}(n)\n",
        f"struct {a}:\n    var {b}: Int32\n    var {b}: Int32\n" + KERNEL + f"    var s: {a}\n" + BODY,
        f"@fieldwise_init\nstruct {a}(TrivialRegisterPassable):\n    var {b}: Int32\n" + KERNEL + f"    p[] = {a}(n).{b}\n",
        f"@fieldwise_init\nstruct S(TrivialRegisterPassable):\n    var {b}: Int32\n    def {b}(self) -> Int32:\n        return 1\n    comptime {b} = 3\n" + KERNEL + f"    p[] = S(n).{b}\n",
        KERNEL + f"    var {a} = n\n    var {a} = {a} + 1\n    p[] = {a}\n", KERNEL + f"    for {a} in range(n):\n        p[] = {a}\n",
        KERNEL + f"    comptime {a} = 3\n    comptime {a} = 4\n    p[] = {a}\n", f"comptime {a} = 3\n" + KERNEL + f"    p[] = {a}\n",
        f"from {a} import {b}\n" + KERNEL + f"    {b}()\n", f"import {a}\n" + KERNEL + f"    {a}.{b}()\n", f"from .{a} import *\n" + KERNEL + BODY,
        f"from ..{a} import {b}\n" + KERNEL + BODY, f"from {a}.{b} import {a} as {b}\n" + KERNEL + f"    p[] = {b}\n",
        f"def f({a}: Int32, {a}: Int32) -> Int32:\n    return {a}\n" + KERNEL + f"    p[] = f(n, {a}=n)\n",
        f"def f[{a}: Int, {a}: Int]() -> Int:\n    return {a}\n" + KERNEL + "    p[] = Int32(f[1, 2]())\n",
        KERNEL + f"    p[] = n.{a}\n", KERNEL + f"    p[] = {a}\n", KERNEL + f"    {a}()\n", KERNEL + f"    p[] = Int32({a}[{b}])\n",
        KERNEL + f'    p[] = inlined_assembly["{a} {b};", Int32, constraints="=r,r"](n)\n',
        KERNEL + f'    inlined_assembly["mov.u32 $0, %{a};", NoneType, constraints="{b}", has_side_effect=True]()\n',
        KERNEL + f"    var {a}: Array[{b}, 2]\n" + BODY, f"@{a}\n" + KERNEL + BODY, f"@kernel({a}={b})\n" + KERNEL[8:] + BODY,
        "@kernel\n@kernel\n" + KERNEL[8:] + BODY, KERNEL + BODY + KERNEL + BODY, "struct S:\n    @kernel\n    def k(self): pass\n",
    ))  # fmt: skip


def _literals(rng: random.Random) -> str:
    x, y = rng.choice(HUGE), rng.choice(HUGE)
    t = rng.choice(
        (
            "Int",
            "Int8",
            "UInt64",
            "Float16",
            "Float32",
            "Float64",
            "BFloat16",
            "Bool",
            "Float8_e4m3fn",
            "SIMD[DType.int8, 4]",
        )
    )
    return rng.choice((
        KERNEL + f"    p[] = {x}\n", KERNEL + f"    var x: {t} = {x}\n" + BODY, KERNEL + f"    var x = {x}\n" + BODY,
        KERNEL + f"    p[] = Int32({t}({x}))\n", f"comptime A = {x}\n" + KERNEL + "    p[] = A\n", f"comptime A: {t} = {x}\n" + KERNEL + "    p[] = Int32(A)\n",
        KERNEL + f"    p[] = n + {x}\n", KERNEL + f"    p[] = n ** ({x})\n", KERNEL + f"    p[] = 1 if {x} > {y} else 2\n",
        KERNEL + f"    p[unsafe_offset={x}] = n\n", KERNEL + f"    var x = Float64({x}) * ({y})\n    p[] = Int32(x)\n",
        KERNEL + f"    var x = {x} if n > 0 else {y}\n" + BODY, KERNEL + f"    for i in range({x}):\n        p[] = 1\n",
        KERNEL + f"    print({x})\n", f"@kernel\ndef k[N: {t} = {x}](p: Pointer[Int32, MutAnyOrigin]):\n" + BODY,
        KERNEL + f"    p[] = Int32(Int64({x}) // Int64({y}))\n", KERNEL + f"    comptime assert {x} > {y}\n", KERNEL + f"    p[] = Int32(({x}) % ({y}))\n",
    ))  # fmt: skip


def _constants(rng: random.Random) -> Case:
    text = '@kernel\ndef k[N: Int = 3, T: DType = DType.int32, F: Float32 = 1.5, B: Bool = True, S: StaticString = "x"](p: Pointer[Scalar[T], MutAnyOrigin]):\n    comptime for i in range(N):\n        p[i] = Scalar[T](i)\n'
    values = (*HUGE, "DType.float32", "DType.bool", "DType.float8_e4m3fn", "'a\"b'", '"é\\n%"', "", "\n", "(", ")", "1\ncomptime x = 2", "1; pass", "#", "k", "N",
              "thread_idx.x", "Int", "lambda: 1", "\0", "\ud800", "1 if True else 2", "Int32(3)", "[1]", "(1, 2)", "None", "T", "-5", "range(3)", "\\", '"""', "é", "10**9")  # fmt: skip
    given = {
        rng.choice(("N", "T", "F", "B", "S", "X", "", "é", "N\n", "a b")): rng.choice(values)
        for _ in range(rng.choice((1, 1, 2)))
    }
    return Case("hostile", text.encode(), rng.choice(("k.pdsl", "é\n.pdsl", "a\"b.pdsl", "\\x.pdsl", "*/.pdsl", "-", "<stdin>", "x.mojo", "x")),
                rng.choice((None, None, "k", "kk", "", "é")), given, rng.choice(ARCHS), "try", rng.random() < 0.5)  # fmt: skip


def hostile(rng: random.Random) -> Case:
    kind = rng.randrange(11)
    if kind == 0:
        return _constants(rng)
    maker = (_nested, _endless, _endless, _enormous, _enormous, _names, _names, _names, _literals, _literals)[kind - 1]
    return Case("hostile", maker(rng).encode(), "hostile.pdsl", arch=rng.choice(ARCHS))
