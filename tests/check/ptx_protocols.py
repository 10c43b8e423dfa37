"""Kernels of PTX for tests: a body and the protocol that must come out."""

from __future__ import annotations

from textwrap import dedent

from ptxdsl.protocol.from_ptx import kernel_models
from ptxdsl.protocol.printer import protocol_text
from ptxdsl.ptx.reader import read

HEAD = """\
.version 8.6
.target sm_100a
.address_size 64
{outside}
.visible .entry k(.param .u32 n, .param .u64 src, .param .u64 dst, .param .u32 m)
.reqntid 64, 1, 1
{{
.reg .pred %p<20>;
.reg .b16 %h<20>;
.reg .b32 %r<40>;
.reg .b64 %rd<40>;
.shared .align 8 .b8 bars[64];
.shared .align 128 .b8 data[1024];
"""


def models(body, outside=""):
    return kernel_models(read(HEAD.format(outside=outside) + body + "\n}\n", "k.ptx"))


def protocol(body, outside=""):
    """The lines behind the arrays."""
    (kernel,) = models(body, outside)
    lines = protocol_text(kernel).splitlines()
    return "\n".join(line[2:] for line in lines if line.startswith("  ") and not line.startswith("  shared "))


def agree(body, expected, outside=""):
    assert protocol(body, outside) == dedent(expected).strip("\n")
