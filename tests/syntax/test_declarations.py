"""def and struct, with their parameters, arguments and decorators."""

from ptxdsl.syntax import ast


def test_def_without_anything(statement):
    node = statement("def f(): pass")
    assert (node.name, node.name_span.text, node.params, node.args, node.raises) == ("f", "f", (), (), False)
    assert (node.returns, node.where, node.decorators, node.docstring) == (None, (), (), None)


def test_def_with_everything(statement, written):
    node = statement(
        '@kernel(threads=128, name="k")\n@always_inline\n'
        "def f[n: Int](x: Int = 3) raises -> SIMD[T, n] where n > 2 where g(n):\n"
        '    """Doc."""\n    return x\n'
    )
    assert [(d.name, d.args and [written(a) for a in d.args]) for d in node.decorators] == [
        ("kernel", ["threads=128", "name='k'"]),
        ("always_inline", None),
    ]
    assert node.raises and written(node.returns) == "(at SIMD T n)"
    assert [written(w) for w in node.where] == ["(n > 2)", "(call g n)"]
    assert node.docstring == "Doc." and [type(s) for s in node.body] == [ast.Return]


def test_parameters(statement, written):
    node = statement("def f[a: Int, b: B, //, c, d: D = 3, *, e: E = 4,](): pass")
    found = [(p.name, written(p.type), written(p.default), p.kind) for p in node.params]
    assert found == [
        ("a", "Int", "_", "infer"),
        ("b", "B", "_", "infer"),
        ("c", "_", "_", "pos"),
        ("d", "D", "3", "pos"),
        ("e", "E", "4", "kw"),
    ]


def test_arguments(statement, written):
    node = statement("def f(a, /, b: B, c: C = 3, *, d: D = 4, e: E): pass")
    found = [(a.name, written(a.type), written(a.default), a.kind) for a in node.args]
    assert found == [
        ("a", "_", "_", "posonly"),
        ("b", "B", "_", "pos"),
        ("c", "C", "3", "pos"),
        ("d", "D", "4", "kw"),
        ("e", "E", "_", "kw"),
    ]


def test_conventions(statement):
    node = statement("def f(self, read a: T, mut b: T, out c: T, ref d: T, ref [o] e: T, deinit g: T, var h: T): ...")
    found = [(a.convention, a.name) for a in node.args]
    assert found == [
        ("read", "self"), ("read", "a"), ("mut", "b"), ("out", "c"), ("ref", "d"), ("ref", "e"), ("deinit", "g"),
        ("var", "h"),
    ]  # fmt: skip


def test_soft_keywords_as_argument_names(statement):
    node = statement("def f[mut: Bool](mut: Int, out, read read: Int = 3): pass")
    assert [(a.convention, a.name) for a in node.args] == [("read", "mut"), ("read", "out"), ("read", "read")]


def test_declaration_over_several_lines(statement):
    node = statement("def f[\n    n: Int,\n](\n    var a: Int,  # comment\n\n    b: Int,\n) -> Int:\n    return a\n")
    assert [a.name for a in node.args] == ["a", "b"]


def test_nested_def(statement):
    node = statement("def f():\n    @no_inline\n    def g(): pass\n    g()\n")
    assert node.body[0].decorators[0].name == "no_inline"


def test_struct(statement, written):
    node = statement(
        "@fieldwise_init\nstruct Ring[n: Int, o: MutOrigin](Movable & Copyable, TrivialRegisterPassable) where n > 0:\n"
        '    """A ring."""\n\n'
        "    var base: Pointer[Float32, Self.o]\n"
        '    """The first slot."""\n'
        "    var a, b: Int\n"
        "    comptime size = Self.n * 2\n"
        "    def __init__(out self): self.a = 0\n"
        "    @staticmethod\n    def make() -> Self: ...\n"
        "    pass\n    ...\n"
    )
    assert (node.name, node.name_span.text, node.docstring) == ("Ring", "Ring", "A ring.")
    assert [p.name for p in node.params] == ["n", "o"]
    assert [written(t) for t in node.traits] == ["Movable", "Copyable", "TrivialRegisterPassable"]
    assert [written(w) for w in node.where] == ["(n > 0)"]
    assert [(type(m).__name__, m.name) for m in node.members] == [
        ("FieldDecl", "base"),
        ("FieldDecl", "a"),
        ("FieldDecl", "b"),
        ("ComptimeDecl", "size"),
        ("FunctionDef", "__init__"),
        ("FunctionDef", "make"),
    ]
    assert node.members[0].docstring == "The first slot." and node.members[1].docstring is None
    assert node.decorators[0].name == "fieldwise_init"
    assert node.members[-1].decorators[0].name == "staticmethod"


def test_struct_without_members(statement):
    assert statement("struct Empty: pass").members == ()
    assert statement('struct Empty():\n    """Only a docstring."""\n').members == ()
