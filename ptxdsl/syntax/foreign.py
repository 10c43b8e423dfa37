"""What Mojo or Python has, or had, and this language does not: the words, and what to write instead."""

from __future__ import annotations

from ptxdsl.record import dataclass


@dataclass(frozen=True)
class Foreign:
    """``gone`` marks what Mojo itself has given up. ``stand_in`` is the keyword that takes the word's place, so that
    the rest of the statement is still checked."""

    message: str
    help: str
    gone: bool = False
    stand_in: str | None = None


# Reserved words, refused wherever they stand.
WORDS: dict[str, Foreign] = {
    "fn": Foreign("'fn' is gone from Mojo", "write 'def'", True, "DEF"),
    "let": Foreign("'let' is gone from Mojo", "write 'var'", True, "VAR"),
    "alias": Foreign("'alias' is gone from Mojo", "write 'comptime NAME = value'", True, "COMPTIME"),
    "class": Foreign("classes are not in the subset", "write 'struct'", False, "STRUCT"),
    "lambda": Foreign("'lambda' is not in the subset", "write a nested 'def'"),
    "try": Foreign("exceptions are not in the subset", "device code cannot raise: test with 'if'"),
    "except": Foreign("exceptions are not in the subset", "device code cannot raise: test with 'if'"),
    "finally": Foreign("exceptions are not in the subset", "device code cannot raise: test with 'if'"),
    "raise": Foreign(
        "'raise' is not in the subset", 'write debug_assert(condition, "message"), or return a value that says so'
    ),
    "with": Foreign("'with' is not in the subset", "write the calls at the beginning and the end yourself"),
    "async": Foreign(
        "'async' is not in the subset", "asynchronous copies and matrix operations are calls; wait on their barrier"
    ),
    "await": Foreign("'await' is not in the subset", "wait on a barrier or a pipeline"),
    "yield": Foreign("generators are not in the subset", "write a loop, or return an Array"),
    "global": Foreign(
        "'global' is not in the subset", "there are no global variables: pass a pointer, or use 'comptime'"
    ),
    "nonlocal": Foreign(
        "'nonlocal' is not in the subset", "a nested 'def' may read what is around it; pass 'mut' arguments"
    ),
    "del": Foreign("'del' is not in the subset", "a value ends with its scope"),
}

# Names that begin a line as if they were statements.
LEADING_NAMES: dict[str, Foreign] = {
    "match": Foreign("'match' is not in the subset", "write 'if' and 'elif'"),
    "switch": Foreign("there is no 'switch'", "write 'if' and 'elif'"),
    "case": Foreign("'match' is not in the subset", "write 'if' and 'elif'"),
    "elseif": Foreign("there is no 'elseif'", "write 'elif'"),
    "elsif": Foreign("there is no 'elsif'", "write 'elif'"),
    "func": Foreign("there is no 'func'", "write 'def'"),
    "function": Foreign("there is no 'function'", "write 'def'"),
    "const": Foreign("there is no 'const'", "write 'comptime NAME = value'"),
    "auto": Foreign("there is no 'auto'", "write 'var'"),
    "void": Foreign("there is no 'void'", "write 'def name(arguments):'"),
    "__global__": Foreign("there is no '__global__'", "write '@kernel' on a line above 'def name(arguments):'"),
    "__device__": Foreign("there is no '__device__'", "write 'def name(arguments) -> Type:'"),
    "__host__": Foreign("there is no '__host__'", "write 'def name(arguments) -> Type:'"),
    "__shared__": Foreign(
        "there is no '__shared__'",
        "write 'var tile = unsafe_stack_allocation[n, Float32, address_space=.SHARED]()'",
    ),
    "extern": Foreign(
        "there is no 'extern'", "shared memory of the launch's size is external_memory[T, address_space=.SHARED]()"
    ),
    "asm": Foreign("there is no 'asm'", 'write inlined_assembly["instruction;", Type, constraints="…"](…)'),
    "type": Foreign("'type' is not in the subset", "write 'comptime NAME = Type'"),
    "print": Foreign("'print' is a function", "write 'print(...)'"),
    "extension": Foreign("extensions are not in the subset", "write a function, or a method in the struct"),
    "__extension": Foreign("extensions are not in the subset", "write a function, or a method in the struct"),
}

# Types of C: what declares a variable there, or converts a value.
TYPES_OF_C = {
    "int": "Int32", "unsigned": "UInt32", "long": "Int64", "char": "Int8", "bool": "Bool", "size_t": "UInt64",
    "float": "Float32", "double": "Float64", "half": "Float16", "__half": "Float16", "__nv_bfloat16": "BFloat16",
    **{f"int{bits}_t": f"Int{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}_t": f"UInt{bits}" for bits in (8, 16, 32, 64)},
}  # fmt: skip

# Names before an argument's name.
CONVENTIONS: dict[str, Foreign] = {
    "owned": Foreign("'owned' is gone from Mojo", "write 'var'", True, "VAR"),
    "inout": Foreign("'inout' is gone from Mojo", "write 'mut', or 'out' for the self of __init__", True, "MUT"),
    "borrowed": Foreign("'borrowed' is gone from Mojo", "leave it out, or write 'read'", True, "READ"),
}

# Names after a def's arguments.
EFFECTS: dict[str, Foreign] = {
    name: Foreign(f"'{name}' is not in the subset", "leave it out")
    for name in ("capturing", "escaping", "thin", "unified", "register_passable", "async")
}

STRING_PREFIXES: dict[str, Foreign] = {
    prefix: Foreign(what, help)
    for prefixes, what, help in (
        ("f F fr rf Fr rF fR Rf FR RF", "f-strings are not in the subset", "hand the values to print(...) one by one"),
        ("t T", "t-strings are not in the subset", "hand the values to print(...) one by one"),
        ("b B br rb bR rB Br Rb BR RB", "bytes literals are not in the subset", "write an ordinary string"),
        ("u U", "strings have no 'u' prefix", "leave it out"),
    )
    for prefix in prefixes.split()
}

# These go with a word before them, which has been refused already.
CONTINUATIONS = frozenset(("except", "finally", "case"))
