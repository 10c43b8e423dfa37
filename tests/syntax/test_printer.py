"""The dump of ``--emit=ast``."""

from ptxdsl.source import Source
from ptxdsl.syntax.parse import parse
from ptxdsl.syntax.printer import ast_text

TEXT = """\
@kernel(threads=32)
def f[n: Int](mut a: T, b: U = False):
    \"\"\"Doc.\"\"\"
    var x, y = a.b[0, k=-1] < 2.5 == "s"
    comptime if n: return
from ..m import p as q
"""

EXPECTED = """\
Module @1:1
  body: FunctionDef name='f' docstring='Doc.' @2:1
    params: Param name='n' kind='pos' @2:7
      type: Name id='Int' @2:10
    args: ArgDecl name='a' convention='mut' kind='pos' @2:15
      type: Name id='T' @2:22
    args: ArgDecl name='b' convention='read' kind='pos' @2:25
      type: Name id='U' @2:28
      default: BoolLiteral False @2:32
    decorators: Decorator name='kernel' @1:1
      args: Argument name='threads' @1:9
        value: IntLiteral value=32 @1:17
    body: VarDecl @4:5
      target: TupleExpr @4:9
        items: Name id='x' @4:9
        items: Name id='y' @4:12
      value: Compare ops=< == @4:16
        operands: Subscript @4:16
          value: Attribute name='b' @4:16
            value: Name id='a' @4:16
          args: Argument @4:20
            value: IntLiteral value=0 @4:20
          args: Argument name='k' @4:23
            value: Unary op='-' @4:25
              operand: IntLiteral value=1 @4:26
        operands: FloatLiteral text='2.5' @4:31
        operands: StringLiteral value='s' @4:38
    body: If comptime @5:5
      test: Name id='n' @5:17
      then: Return @5:20
  body: Import module='m' level=2 @6:1
    names: ImportName name='p' alias='q' @6:17
"""


def test_dump():
    assert ast_text(parse(Source("test.pdsl", TEXT))) == EXPECTED
