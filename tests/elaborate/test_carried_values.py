"""What a run-time loop or branch changes is seen after it, in whatever way it is changed."""

import pytest
from elaborate_support import diagnostics, typed, where
from semantics import F64, Bool, evaluate, run


def test_a_local_function_given_as_a_parameter_changes_a_variable_in_a_loop() -> None:
    program = """
        def repeat[f: def() -> None](n: Int):
            var i = 0
            while i < n:
                f()
                i += 1

        def twice[f: def() -> None](n: Int):
            def both():
                f()
                f()
            for i in range(2):
                repeat[both](n)

        @kernel
        def k(result: Pointer[Int, MutAnyOrigin], n: Int):
            var count = 0
            def increment():
                count += 1
            repeat[increment](n)
            result[] = count
            twice[increment](n)
            result[] = count
        """
    assert run(program, 5) == [5, 25]


def test_a_local_function_under_another_name_changes_a_variable_in_a_loop() -> None:
    program = """
        @kernel
        def k(result: Pointer[Int, MutAnyOrigin], n: Int):
            var count = 0
            def increment():
                count += 1
            comptime f = increment
            for i in range(n):
                f()
            result[] = count
        """
    assert run(program, 5) == [5]


UNSEEN = """\
@fieldwise_init
struct Holder[f: def() -> None]:
    var x: Int
    def go(self):
        Self.f()

@kernel
def k(result: Pointer[Int, MutAnyOrigin], n: Int):
    var count = 0
    def increment():
        count += 1
    var holder = Holder[increment](1)
    for i in range(n):
        holder.go()
    result[] = count
"""


def test_a_variable_that_changes_in_a_loop_unseen_is_an_error() -> None:
    (problem,) = diagnostics(UNSEEN)
    assert where(problem) == ("E0410", 13, 5)
    assert problem.message == "`count` changes in this loop, which does not name it"


PARTS = """
    @fieldwise_init
    struct Pair:
        var a: Int
        var b: Int

    @kernel
    def k(result: Pointer[Int, MutAnyOrigin], n: Int):
        var pair: Pair
        pair.a = 1
        for i in range(n):
            pair.b = i
            pair.a += pair.b
        result[] = pair.{read}
    """


def test_a_struct_of_which_a_loop_sets_a_part() -> None:
    assert run(PARTS.format(read="a"), 5) == [11]


def test_the_part_set_in_a_loop_has_no_value_after_it() -> None:
    (problem,) = diagnostics(PARTS.format(read="b"))
    assert problem.code == "E0209"


NAMED = """
    @fieldwise_init
    struct Named:
        var name: StaticString
        var x: Int

    @kernel
    def k(n: Int):
        var named = Named("a", 1)
        {place}
            named.name = "b"
        print(named.name)
    """


@pytest.mark.parametrize("place", ["if n > 3:", "for i in range(n):", "while n > 3:"])
def test_a_string_does_not_change_at_run_time(place: str) -> None:
    (problem,) = diagnostics(NAMED.format(place=place))
    assert problem.code == "E0401"
    assert problem.message == "a run-time branch or loop cannot change a StaticString: it is known at compile time"


POINTER = """\
@kernel
def k(result: Pointer[Int, MutAnyOrigin], n: Int):
    var memory = unsafe_stack_allocation[4, Int, address_space=AddressSpace.SHARED]()
    var p: Pointer[Int, MutAnyOrigin] = result{cast}
    for i in range(n):
        p = memory.unsafe_origin_cast[MutAnyOrigin]().address_space_cast[AddressSpace.GENERIC]()
    p[] = 7
"""


def test_a_pointer_that_a_loop_moves_to_other_memory_starts_generic() -> None:
    (problem,) = diagnostics(POINTER.format(cast=""))
    assert problem.code == "E0612"
    assert problem.message == "`p` points to global memory before this loop, and elsewhere in it"
    assert diagnostics(POINTER.format(cast=".address_space_cast[AddressSpace.GENERIC]()")) == []


COUNTER = """
    @kernel
    def k(result: Pointer[Int, MutAnyOrigin], n: Int):
        var count = 0
        def next() -> Int:
            count += 1
            return count
        {body}
    """


@pytest.mark.parametrize(("n", "calls"), [(5, 0), (15, 1)])
def test_a_chain_of_comparisons_ends_at_the_first_that_does_not_hold(n: int, calls: int) -> None:
    body = "result[] = 1 if 10 < n < 10 + next() < 0 else 0\n        result[] = count"
    assert run(COUNTER.format(body=body), n) == [0, calls]


def test_choosing_an_overload_evaluates_its_arguments_once() -> None:
    functions = """
    def total(values: Array[Int, 2]) -> Int:
        return values[0] + values[1]

    def total(value: Int32) -> Int:
        return 0
    """
    body = "result[] = total([next(), next()])\n        result[] = count"
    assert run(functions + COUNTER.format(body=body), 0) == [3, 2]


def test_a_variable_has_the_type_of_its_literal_at_compile_time_too() -> None:
    assert evaluate("var x = 9223372036854775807\nx = x + 1\nreturn x // 2", "Int") == -(2**62)
    assert evaluate("var x = 1 if c else 2.5\nreturn x", "Float64", c=Bool(True)) == 1.0
    assert repr(evaluate("var x = -0.0 if c else 2.5\nreturn x * y", "Float64", c=Bool(True), y=F64(1.0))) == "-0.0"


UNTIL = """
    @kernel
    def k(result: Pointer[Int, MutAnyOrigin], n: Int):
        var x: Int
        var i = 0
        while {condition}:
            i += 1
            if i == 9:
                {given}
                break
            x = n * i
            if x > 13:
                break
        result[] = x * 10 + i
    """


def test_a_variable_that_every_way_out_of_an_endless_loop_gives_a_value() -> None:
    program = UNTIL.format(condition="True", given="x = 1")
    assert run(program, 5) == [153]
    assert run(program, 0) == [19]


@pytest.mark.parametrize(("condition", "given"), [("True", "pass"), ("i < n", "x = 1")])
def test_a_variable_that_a_loop_may_leave_without_a_value(condition: str, given: str) -> None:
    (problem,) = diagnostics(UNTIL.format(condition=condition, given=given))
    assert problem.code == "E0209"


def test_the_type_of_a_list_is_found_without_evaluating_it_again() -> None:
    functions = """
    def total(values: Array) -> Int:
        return Int(values[0]) + Int(values[1])
    """
    body = "result[] = total([next(), next()])\n        result[] = count"
    assert run(functions + COUNTER.format(body=body), 0) == [3, 2]


@pytest.mark.parametrize("use", ["comptime x = next()", "comptime if next() > 0:\n            pass"])
def test_compile_time_code_does_not_change_variables_of_the_run(use: str) -> None:
    (problem,) = diagnostics(COUNTER.format(body=use))
    assert problem.code == "E0401"
    assert problem.message == "`count` is a run-time variable: it cannot change at compile time"


def test_a_function_that_never_returns_inside_an_expression() -> None:
    text = """\
        def forever() -> Int32:
            while True:
                pass

        @kernel
        def k(res: Pointer[Int32, MutAnyOrigin]):
            res[] = forever() + 1
        """
    (kernel,) = typed(text).kernels
    assert not [op for op in kernel.body.ops if op.name == "store"]
