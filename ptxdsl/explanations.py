"""Code → explanation. The first line is a title, a blank line follows, then the rule in plain words. Data only."""

from __future__ import annotations

EXPLANATIONS: dict[str, str] = {
    "E0001": """
internal error

The compiler itself failed; the program it was given may be right or wrong. Please report it with the file. With
PTXDSL_DEBUG=1 in the environment the place in the compiler is printed too.
""",
    "E0250": """
unknown module

`from MODULE import …` looks for MODULE in this order: a file MODULE.pdsl or MODULE.mojo beside the importing file
(dots are folders below it), the standard library, and Mojo's module paths that the standard library stands for
(`max.gpu`, `std.memory`, …). A text without a file of its own (standard input, a string) has nothing beside it.
""",
    "E0251": """
an import that leaves the folder of the importing file

A program may import files beside it and below, never above: not by `..`, not by a link that points elsewhere. So a
kernel that was handed to you reads nothing but its own folder.
""",
    "E1001": """
no such file

The file named on the command line, or handed to `load`, does not exist.
""",
    "E1002": """
a folder where a file is wanted

Name one of the files in it.
""",
    "E1003": """
an unreadable file

The file exists and cannot be read (permissions, a device), or it is longer than 16 MiB, which no kernel is.
""",
    "E1004": """
-D wants NAME=VALUE

`-D STAGES=4` gives the kernel's comptime parameter STAGES. The value is a constant expression as it would stand in the
file: `-D CHECKED=True`, `-D T=DType.float32`.
""",
    "E1005": """
-D gives one name twice

Each comptime parameter has one value in a compilation.
""",
    "E1006": """
binary output to a terminal

A cubin is machine code. Name a file with `-o`, or send standard output to one.
""",
    "E1007": """
the output cannot be written

The file or standard output refused: permissions, a full disk, a folder of that name. A file that was there before is as
it was; output is written beside it and then renamed.
""",
    "E1008": """
unknown diagnostic code

`ptxdsl explain` wants a code as diagnostics print it: E0301.
""",
    "E1010": """
the value of a -D constant is not an expression

The part after `=` is read as an expression of the language: a literal, `True`, `DType.float32`, `2 * 3`. Quote it for
the shell where it has spaces or brackets.
""",
    "E1011": """
a stage that lies before the file's own

An .ll file starts at LLVM IR and a .ptx file at PTX; what comes before does not exist for them.
""",
    "E1090": """
a damaged installation

ptxdsl finds its grammar and standard library inside the installed package, or beside it in a checkout. They are
missing: install it again.
""",
}
