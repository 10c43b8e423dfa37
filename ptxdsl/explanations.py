"""Code → explanation. The first line is a title, a blank line follows, then the rule in plain words. Data only."""

from __future__ import annotations

EXPLANATIONS: dict[str, str] = {
    "E0001": """
internal error

The compiler itself failed; the program it was given may be right or wrong. Please report it with the file. With
PTXDSL_DEBUG=1 in the environment the place in the compiler is printed too.
""",
    "E0101": """
the text is not UTF-8

A source file is UTF-8 text. Save it so, or look whether it is a source file at all.
""",
    "E0102": """
a character that the language does not have

Outside of strings and comments a program consists of names, numbers, and the signs of the grammar. Quotation marks
and minus signs that a word processor has made typographic are the usual cause.
""",
    "E0103": """
a character that cannot stand here

Names consist of ASCII letters, digits and `_`. Some signs of other languages (`;` at a line's end, `$`, `?`, `&&`)
have no meaning here; the help line says what to write.
""",
    "E0104": """
a string without its closing quote

A string in single quotation marks ends on its line; one in three ends where the three stand again.
""",
    "E0105": """
not a number

Numbers are `12`, `0x1F`, `0b101`, `0o17`, `1.5`, `2e-3`, with `_` between digits where that helps reading.
""",
    "E0106": """
indentation that does not fit

A block is indented further than the line that opens it, by the same white space in all its lines, and ends where a
line returns to an indentation that was there before. Tabs and spaces are not mixed.
""",
    "E0107": """
a number that is too long

Longer than anything that a type can hold.
""",
    "E0108": """
nesting that is too deep

Brackets and blocks nest to a fixed depth, far beyond what a reader can follow. Name parts of the expression, or move
blocks into functions.
""",
    "E0109": """
an escape that strings do not have

In a string `\\n`, `\\t`, `\\\\`, `\\"`, `\\x41`, `\\u0041` and their kind are escapes; a backslash itself is `\\\\`.
""",
    "E0110": """
a syntax error

The text cannot go on like this at the marked place. What was expected depends on what stands before it; the grammar
is in `grammar/pdsl.lark`, and docs/language.md has examples of each construct. After an error reading goes on at the
next line, so that one run finds many.
""",
    "E0111": """
brackets that do not match

Every `(` and `[` is closed by its own kind, in the order in which they were opened. A statement's keyword at the
start of a line ends open brackets, so the mark is near the bracket that was forgotten.
""",
    "E0112": """
a statement where an expression is wanted

`=` assigns and is a statement of its own; `==` compares. `return`, `pass` and their kind stand at the start of a
line.
""",
    "E0113": """
a construct of Mojo or Python that is not in the subset

The language is a subset of Mojo: what a kernel can use. Traits, classes, exceptions, `with`, `lambda`, `async`,
dictionaries and comprehensions are not in it. docs/language.md lists what is.
""",
    "E0114": """
a spelling that Mojo has given up

`fn` is `def`, `let` is `var`, `alias` is `comptime`, `@parameter if` is `comptime if`, `constrained[…]` is `comptime
assert`. The help line has the present form.
""",
    "E0115": """
a keyword used as a name

Keywords and reserved words cannot name anything.
""",
    "E0116": """
a declaration without `var`

`Int32 x = 3` is C; here it is `var x: Int32 = 3`.
""",
    "E0117": """
a block or definition that is missing

After `:` at a line's end follows an indented block, and after a decorator the `def` or `struct` that it belongs to.
An empty block is `pass`.
""",
    "E0120": """
a variable without value and type

`var x` alone says nothing. Write `var x = value`, or `var x: Type` and assign before the first use.
""",
    "E0121": """
a target that cannot be assigned to

Left of `=` stand a name, a field (`a.b`), an element (`a[i]`) or several of them with commas between.
""",
    "E0122": """
a statement that cannot stand in a struct

A struct has fields (`var name: Type`), methods (`def`) and compile-time names (`comptime NAME = value`). Fields have
no values of their own: `__init__` or `@fieldwise_init` gives them.
""",
    "E0123": """
a parameter or argument list in the wrong order

In `[…]` inferred parameters come first and end with `//`; what follows `*` is given by keyword only. In `(…)` what
stands before `/` is given by position only. What has a default comes after what has none.
""",
    "E0124": """
variadic arguments are not in the subset

A function has a fixed list of arguments. Pass an Array, a SIMD or a tuple instead of `*args`.
""",
    "E0201": """
unknown name

The name is neither declared here or in an enclosing scope, nor imported, nor one of those that need no import. A
variable lives from its `var` to the end of its block.
""",
    "E0202": """
a name declared twice in one scope

Functions may be overloaded; everything else has one declaration in a scope. An inner block may use a name again.
""",
    "E0203": """
a circle of imports

Two modules may import each other, but a name must be declared somewhere in the end.
""",
    "E0204": """
a module does not have the imported name

The module was found; it declares no such name.
""",
    "E0205": """
a variable outside of a function

A module has constants (`comptime NAME = value`), functions and structs. Memory that lives longer than a kernel is
passed to it as a pointer.
""",
    "E0206": """
a statement outside of a function

At the top of a module only declarations and imports stand.
""",
    "E0207": """
a host-only name used in a kernel

Some of Mojo's modules (`max.gpu.host`, `std.sys`, …) are for the program that launches kernels. Importing from them
is allowed, so that Mojo files compile unchanged, but a kernel that reaches such a name cannot be compiled.
""",
    "E0209": """
a variable used before it has a value

A variable must have been given a value on every path that leads to its use: in both branches of an `if`, and before a
loop that may run zero times.
""",
    "E0210": """
a result that has no value

A function with a result, and a constructor with its fields, must have given every part of it a value when it returns.
""",
    "E0211": """
a struct inside a function

Structs are declared at the top of a module. What depends on a function's parameters becomes a parameter of the
struct.
""",
    "E0212": """
an assignment to a name that is not declared

A variable begins with `var`. Without it a misspelt name would silently be a new variable.
""",
    "E0213": """
a kernel with several overloads

A kernel is asked for by its name, so the name must stand for one `def`.
""",
    "E0214": """
no such kernel

The file has no `def` of the name that was asked for, or none that can be a kernel: its arguments must be scalars,
pointers, tensor maps or register-passable structs, and it returns nothing.
""",
    "E0215": """
several functions could be the kernel

Mark the kernels with `@kernel`, or name one with `--kernel`. Without either a file compiles when it has a single
`def` that can be a kernel.
""",
    "E0216": """
a method as a kernel

A kernel is a function of the module; it can call methods.
""",
    "E0217": """
a kernel that returns something

There is nobody to return to. Results go through pointers.
""",
    "E0218": """
unknown decorator

The decorators are `@kernel`, `@always_inline`, `@no_inline`, `@fieldwise_init`, `@staticmethod` and
`@no_ring_unroll`.
""",
    "E0219": """
the convention of a kernel's argument

The arguments of a kernel are copies that the launch made: they cannot be `mut`, `out` or `ref`.
""",
    "E0220": """
parameters that are too large

All parameters of a kernel together take at most 4096 bytes. Pass large data through a pointer.
""",
    "E0222": """
a type that a kernel cannot take

A kernel takes scalars, pointers, tensor maps and register-passable structs of scalars and pointers.
""",
    "E0223": """
a kernel's pointer into private memory

Shared and local memory exist while a kernel runs; a pointer that comes from outside is to global memory.
""",
    "E0224": """
a name that PTX does not have

`@kernel(name="…")` is the symbol in the PTX: letters, digits, `_` and `$`, not beginning with a digit.
""",
    "E0225": """
an option that @kernel does not have

The options are `name`, `threads`, `max_threads`, `min_blocks`, `max_registers`, `cluster` and `wait`, each given
once.
""",
    "E0226": """
a launch bound out of range

Bounds must be what the hardware can do. `min_blocks` counts only beside `threads` or `max_threads`: the assembler
ignores it otherwise.
""",
    "E0227": """
two kernels with one PTX name

All kernels of a file go into one module. Rename one, or give it `@kernel(name="…")`.
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
    "E0301": """
a value of another type is wanted

There are no implicit conversions between run-time types: an Int is no Int32, and an Int32 no UInt32. Convert by name,
`Int32(x)` or `x.cast[DType.int32]()`. Literals take the type of their place.
""",
    "E0302": """
an operator does not apply to these operands

Both sides of an arithmetic or comparison operator have the same type; Int, Int32 and UInt32 do not mix. A struct
takes part by defining the operator's method (`__add__`, …).
""",
    "E0303": """
a literal that does not fit its type

`var a: Int8 = 300` is an error here (Mojo wraps it to 44): a literal means what is written. Use a wider type, or
convert a run-time value, which wraps.
""",
    "E0304": """
a condition that is no Bool

`if`, `while`, `and`, `or` and `not` take a Bool or a scalar integer, which is true when it is not 0.
""",
    "E0306": """
too many parameters

More values stand in `[…]` than there are parameters to take them.
""",
    "E0307": """
no parameter of this name

A keyword in `[…]` names a parameter of the function or struct.
""",
    "E0308": """
a parameter given twice

By position and by keyword, or by keyword twice.
""",
    "E0309": """
a type is wanted, a value given

The parameter stands for a type: `Array[Float32, 4]`, not `Array[1.0, 4]`.
""",
    "E0310": """
a parameter without a value

It has no default, and the arguments do not determine it. Give it in `[…]`.
""",
    "E0311": """
a value where a type is wanted

After `:` and `->` and in type parameters stands a type.
""",
    "E0312": """
a struct that contains itself

Its size would have no end. Hold a Pointer instead.
""",
    "E0313": """
a type that a field cannot have

Fields hold register-passable values: scalars, vectors, pointers, Arrays, tuples and other structs.
""",
    "E0314": """
an Array's size

An Array lives in registers; its size is a compile-time number from 0 to 1024. Larger storage is shared or global
memory.
""",
    "E0315": """
a SIMD width

A width is a power of two, 1 to 256.
""",
    "E0316": """
an origin is wanted

The second parameter of Pointer is an origin: `MutAnyOrigin`, `ImmutAnyOrigin`. Origins are read for Mojo's sake and
do not change the code.
""",
    "E0317": """
assignment to a temporary value

What is assigned to must live somewhere: a variable, a field or element of one, or memory behind a pointer.
""",
    "E0318": """
a leading-dot name whose type is not known

`.SHARED` is short for `AddressSpace.SHARED` where the context wants an AddressSpace. Elsewhere write the type.
""",
    "E0319": """
no overload takes these arguments

Several functions have this name; each is shown with the reason why it does not fit.
""",
    "E0320": """
an ambiguous call

More than one overload takes the arguments equally well. Convert an argument, so that one fits exactly.
""",
    "E0321": """
a change of something read-only

Arguments are read-only unless they are declared `mut` (changes reach the caller) or `var` (a copy of one's own). A
method that changes its value has `mut self`.
""",
    "E0322": """
too many arguments

More values stand in `(…)` than the function takes by position.
""",
    "E0323": """
no argument of this name

A keyword in `(…)` names an argument of the function.
""",
    "E0324": """
an argument given twice

By position and by keyword, or by keyword twice.
""",
    "E0325": """
an argument is missing

It has no default, so the call must give it.
""",
    "E0326": """
an argument without a type

Every argument of a `def` has a type; `self` alone has none.
""",
    "E0327": """
a function that can end without its result

Every path through a function with `-> T` ends with `return value`.
""",
    "E0328": """
a statement that is not in the subset

It is Mojo, but nothing that kernels here can use. docs/language.md lists what is in the subset.
""",
    "E0329": """
a list that does not fit its Array

A list initialises an Array: as many elements as it holds, of its element type. The type of an empty list must come
from the context.
""",
    "E0330": """
no such member

The type has no field, method or compile-time name of this name.
""",
    "E0331": """
something that cannot be indexed so

Pointers, vectors, Arrays and tuples take one integer; a struct needs `__getitem__`.
""",
    "E0332": """
something that cannot be called

Functions, methods and types are called; values are not.
""",
    "E0333": """
a type that a variable cannot have

Strings, types and functions exist at compile time only: name them with `comptime`.
""",
    "E0335": """
a tuple of another length

`var a, b = value` takes a value with as many parts as there are names.
""",
    "E0336": """
a call without a result is given a name

The function returns nothing. Call it as a statement of its own.
""",
    "E0337": """
a change of a compile-time name

`comptime` names, parameters and the index of a `comptime for` are constants. Copy one into a `var` to change it.
""",
    "E0338": """
a loop over something that is no range

A run-time `for` counts: `for i in range(…)`. A `comptime for` also goes through an Array or a tuple.
""",
    "E0339": """
the step of a range

A step is a compile-time constant other than 0. For anything else use `while`.
""",
    "E0340": """
`break` or `continue` outside of a loop

They belong to the `for` or `while` around them.
""",
    "E0341": """
a `return` that does not fit the function

With `-> T` a function returns a T on every path; without it nothing.
""",
    "E0342": """
a struct without a constructor

A struct is made by its `__init__`, or by `@fieldwise_init`, which takes a value for each field in order.
""",
    "E0343": """
an unknown builtin

`@builtin` is for the standard library: it declares what the compiler itself does.
""",
    "E0344": """
too many values printed

One `print` takes a limited number of values: what the printing buffer of the GPU holds.
""",
    "E0345": """
a value that cannot be printed

Scalars, vectors, pointers and strings known at compile time can be printed; of a struct print the fields.
""",
    "E0346": """
inline assembly whose operands do not fit

`constraints` has one letter for each result and operand: `h` 16 bits, `r` 32, `l` 64, `f` Float32, `d` Float64, `n` a
constant; results carry `=` and come first. The letter says what the register holds, so it has to agree with the type:
an Int32 goes with `r`, an Int64 or a pointer with `l`, a Float32 with `f`. The text names the operands `$0`, `$1`, …,
results first, and no others.
""",
    "E0347": """
a function that is named and not called

A statement that only names a function or method does nothing: `p.commit` leaves the stage uncommitted, `barrier` waits
for nobody. Write the parentheses: `p.commit()`.
""",
    "E0401": """
a run-time value where a compile-time value is needed

Parameters, Array sizes, `comptime` names and the conditions of `comptime if` are known when the kernel is compiled.
They come of literals, other parameters, `comptime` names and functions of these.
""",
    "E0402": """
a compile-time name defined in terms of itself

The circle has no start. Functions may recurse, names may not.
""",
    "E0403": """
too many steps at compile time

A compile-time loop or recursion does not end, or a `comptime for` unrolls too far. Use a run-time loop.
""",
    "E0404": """
a kernel that grows too large

Unrolled loops, inlined functions and wide values have made more operations than the assembler takes in reasonable
time. Use a run-time loop or smaller widths.
""",
    "E0405": """
a constraint does not hold

A `where` clause or a `comptime assert` restricts the parameters; this use does not meet it.
""",
    "E0406": """
calls nested too deep

Every call is inlined or specialised at compile time, so recursion needs a compile-time end.
""",
    "E0407": """
a compile-time assertion failed

`comptime assert condition, "message"` states what the code relies on; with these parameters it is false.
""",
    "E0408": """
a kernel's parameter has no value

A kernel's comptime parameters are given when it is compiled: `-D NAME=VALUE`, or `specialize` in Python.
""",
    "E0409": """
-D names a parameter that no kernel has

`-D NAME=VALUE` sets a comptime parameter of a kernel. The help line lists those there are.
""",
    "E0410": """
a variable that changes in a loop which does not name it

A run-time loop carries the variables that it names, itself or in the functions that it calls. Here one changes in
another way, by a local function that is a parameter of a struct. Pass the variable as a `mut` argument.
""",
    "E0501": """
a pipeline without stages

RolePipeline and PipelineState need at least one stage: `RolePipeline[3, True]`. One stage is a plain handshake, more
let the producer run ahead.
""",
    "E0502": """
sub-stages fewer than one

`producer_sub_stages` and `consumer_sub_stages` say how many barriers a stage has on each side. A stage has at least
one.
""",
    "E0503": """
a cta_group other than 1 or 2

Tensor core instructions work for one CTA or for a pair of CTAs.
""",
    "E0504": """
an operation of the other role

A producer acquires and commits; a consumer waits and releases. The role is the second parameter of RolePipeline and
so part of the type: the wrong call would wait on, or complete, the wrong barrier, and the kernel would hang.
""",
    "E0505": """
a sub-stage that is not there

The parameters of the pipeline say how many sub-stages each side has; they count from 0.
""",
    "E0601": """
a type that has no layout in memory

Scalars, vectors, pointers, structs and Arrays of them can be loaded and stored; types, functions and strings exist at
compile time only.
""",
    "E0602": """
a write through a read-only pointer

The pointer's origin is immutable (`ImmutAnyOrigin`). Use `MutAnyOrigin` where the kernel writes.
""",
    "E0603": """
an element that is not there

The index is known at compile time and lies outside.
""",
    "E0604": """
a pointer index that is no integer

`p[unsafe_offset=i]` counts elements by an Int or any other integer type.
""",
    "E0605": """
the address of a variable

Variables live in registers. Use shared memory (`unsafe_stack_allocation[…, address_space=.SHARED]()`) for what must
have an address.
""",
    "E0606": """
a pointer out of nothing

Pointers come of kernel arguments, allocations (`unsafe_stack_allocation`, `external_memory`) and other pointers.
""",
    "E0607": """
an allocation without elements

The number of elements is a compile-time constant of at least 1.
""",
    "E0608": """
an alignment that is none

Alignments count bytes and are powers of two, 1 to 1024.
""",
    "E0609": """
memory of a space where nothing can be allocated

Kernels allocate shared memory (`address_space=.SHARED`) and memory of the thread's own. Global memory is passed in.
""",
    "E0610": """
an allocation larger than shared memory

A block of threads has a limited amount of shared memory, static and dynamic together.
""",
    "E0611": """
vector access through a pointer to something else

`unsafe_load[width=…]` and `unsafe_store` work through pointers to scalars.
""",
    "E0612": """
an address of another memory space

An address of one space means nothing in another. Convert through the generic space where that is meant.
""",
    "E0613": """
too much static shared memory

Static shared memory is limited to 48 KiB in all. For more use dynamic shared memory (`external_memory`), whose size
the launch gives.
""",
    "E0614": """
a named barrier that does not exist

A CTA has the barriers 0 to 15; 0 is also the one of `barrier()`. With `named_barrier[n](id)` give each group of warps
an id of its own.
""",
    "E0615": """
an arrival or byte count that an mbarrier cannot hold

An mbarrier counts 1 to 1,048,575 pending arrivals, and as many transaction bytes (PTX ISA, "mbarrier contents"). Split
a larger transfer into several, each with its own `expect_bytes`.
""",
    "E0616": """
a bulk copy of an odd size

cp.async.bulk copies multiples of 16 bytes between addresses that are aligned to 16 bytes. Copy the rest with ordinary
loads and stores.
""",
    "E0701": """
the target lacks the feature

The operation is an instruction that this target does not have. Features are sets of targets, not thresholds: wgmma
exists on sm_90a alone, tcgen05 on sm_100a and its relatives. `ptxdsl targets` lists all.
""",
    "E0702": """
unknown target

`ptxdsl targets` lists the targets. An `a` stands for one architecture with all its features, an `f` for its family,
no letter for code that later architectures run too.
""",
    "E0703": """
a PTX version that cannot be written

The versions that exist and that the code generator writes are listed in the help line.
""",
    "E0704": """
a PTX version that is too old

The target, or an instruction of the kernel, came with a later version. Leave `--ptx-version` out for the lowest that
will do.
""",
    "E0705": """
a driver that is too old

Each PTX version needs a driver from a certain branch on. Update the driver or compile for another target.
""",
    "E0801": """
the code generator refused

LLVM found the module invalid. Where no inline assembly is involved, please report it with the file.
""",
    "E0802": """
ptxas refused the PTX

ptxas's words are shown at the line that the instruction came from. Where they concern text inside `inlined_assembly`,
that text is wrong; elsewhere please report it with the file.
""",
    "E0803": """
ptxas or nvdisasm is not installed

`--emit=cubin` and `--emit=sass` need NVIDIA's assembler: `pip install 'ptxdsl[assemble]'`, or a CUDA toolkit on PATH
or in CUDA_HOME. PTX needs neither.
""",
    "E0804": """
the assembler did not end

It was stopped after two minutes. Unrolled loops that grow very large are the usual cause.
""",
    "E0805": """
nvdisasm failed

Its words are in the message. An nvdisasm older than the ptxas that made the cubin is the usual cause.
""",
    "E0806": """
LLVM IR that LLVM does not take

The .ll file is not valid for this version of LLVM, or uses something that the target does not have. LLVM's words are
in the message.
""",
    "E0810": """
PTX text that is not understood

A statement, operand or directive is not PTX as the PTX ISA describes its syntax, or the text ends too early. `ptxas` on
the same text says what it thinks of it.
""",
    "E0811": """
a directive that is not known, or not here

The directive is new, misspelt, or stands where PTX does not allow it (in a function's body, at module scope, in a
declaration).
""",
    "E0812": """
a name that PTX text does not declare

Every register, variable, function, label and prototype must be declared. A register of a range is declared with it:
`.reg .b32 %r<4>;` gives %r0 to %r3. A label is seen in its own `{ }` and in those inside it.
""",
    "E0813": """
a name declared twice in PTX text

In one `{ }` a name stands for one register, variable or label; in a module for one variable or function.
""",
    "E0814": """
a number or constant expression that is not understood

Integers are decimal, octal (`017`), hexadecimal (`0x1F`) or binary (`0b11`) of at most 64 bits, with `U` if unsigned;
floats are decimal or bits (`0f3F800000`, `0d…`). Constant expressions have C's operators.
""",
    "E0815": """
the head of a PTX text is wrong

PTX starts with `.version 8.7`, `.target sm_90a` and `.address_size 64`; 32-bit addresses are not supported.
""",
    "E0816": """
a declaration in PTX text that is not understood

A variable has a state space, a type, an alignment that is a power of two, at most one open dimension (the first), and
as many initial values as elements.
""",
    "E0902": """
no usable GPU

Launching needs an NVIDIA GPU of compute capability 8.0 or later and its driver, for CUDA 12.0 or later. Compiling and
the simulator (`kernel.simulate`, `target="sim"`) need neither.
""",
    "E0903": """
the arguments do not match the parameters

A kernel takes exactly the arguments of its `def`, by position.
""",
    "E0904": """
an argument of another type

Arrays must have the pointer's element type, numbers the scalar's kind, structs their fields. Nothing is converted
silently.
""",
    "E0905": """
an array that is not on the kernel's device

A pointer parameter takes memory of the GPU that launches.
""",
    "E0906": """
an array that the kernel cannot take as it is

A pointer has no strides: the array must be contiguous. A kernel that may write needs a writable, aligned array.
""",
    "E0907": """
a number that does not fit its parameter

The value lies outside of the parameter's type.
""",
    "E0908": """
a grid, block or cluster that cannot be launched

A launch is `kernel[grid, block](…)`, each an integer or up to three; the block must keep to the kernel's `threads` or
`max_threads` and to what its registers leave room for, and the grid is made of whole clusters. A cluster has up to 8
blocks on every device that has clusters, up to 16 where its blocks and their shared memory find room.
""",
    "E0909": """
shared memory beyond the limit

Static and dynamic shared memory together must fit what the device lends to a block.
""",
    "E0910": """
not a stream

`stream` takes a CUDA stream of PyTorch or CuPy, an object with `__cuda_stream__`, or a handle (an integer).
""",
    "E0911": """
the driver refused the PTX

The driver's compiler could not load the module; its words follow.
""",
    "E0912": """
the launch failed

The driver refused the launch or reports an earlier kernel's fault. Launches do not wait, so a fault shows at a later
call; the message names what was launched before. A launch with `timeout=` waits for its kernel and says what became of
it. After a fault the CUDA context is lost: only a new process can use the device again.
""",
    "E0913": """
no such kernel

The file has no def of this name, or several and none was named.
""",
    "E0914": """
CUDA in a fork

A process that was forked from one that had used CUDA cannot use it. Start processes by `spawn`, as in
`multiprocessing.get_context("spawn")`; a kernel can be handed to them.
""",
    "E0915": """
a kernel that does not end in time

The launch had a `timeout` (a positive number of seconds), and the kernel was still running when it was over: it waits
for something that does not come, or needs longer. Nothing can stop a kernel on the device, so the process has to end.
`problem.replay()` on the exception runs the same launch in the simulator, which finds deadlocks and shows who waits for
what. A launch that is being captured into a graph does not run, so it cannot be waited for.
""",
    "E0916": """
a kernel that failed on the device

It was waited for (`timeout=`, or a donated array) and ended with a fault: an address outside of any allocation, a
misaligned one, a trap, a failed `debug_assert`. The CUDA context is lost, so the process must be started anew.
`problem.replay()` on the exception runs the same launch in the simulator, which shows the line of the kernel.
""",
    "E0917": """
a launch that cannot be replayed

`replay()` needs the arrays as they were before the launch. They are copied by a launch with `timeout=`, if they have no
more than 256 MiB together and the kernel's tensor maps were made by `ptxdsl.TensorMap` on contiguous arrays.
`kernel.simulate(…)` runs the kernel with arrays of NumPy.
""",
    "E0918": """
an attribute of a launch that is not possible

`cooperative=True` runs all blocks at a time, so there can be no more than the device has room for. `pdl=True` needs
compute capability 9.0. Both are True or False.
""",
    "E0919": """
an unknown assembler

The environment variable PTXDSL_ASSEMBLER chooses what makes machine code of PTX for a launch: `ptxas`, `driver` (the
driver's own compiler), or, empty or unset, ptxas where it is installed and else the driver.
""",
    "E0920": """
a tensor map that the card does not take

A tensor map says where an array lies and which tile of it one instruction moves. The array's address and its strides
are multiples of 16 bytes, its innermost dimension is contiguous, a row of the tile is a multiple of 16 bytes and, if
it is swizzled, not longer than the swizzle; a tile has up to 256 elements in each of up to 5 dimensions.
""",
    "E0921": """
nothing to reload

Only a module of `ptxdsl.load` has a file; one of `ptxdsl.loads` keeps the text that it was given.
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

`-D STAGES=4` gives the kernel's comptime parameter STAGES. The value is a constant expression as it would stand in
the file: `-D CHECKED=True`, `-D T=DType.float32`.
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

The file or standard output refused: permissions, a full disk, a folder of that name, no folder to put it in. A file
that was there before is as it was; output is written beside it and then renamed.
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
    "E1012": """
the output would overwrite the source

`-o` names the very file that is compiled, perhaps by another path or a link. It is left as it is; name another file.
""",
    "E1013": """
an --arg that cannot be read

`--arg NAME=SPEC`, where NAME is the parameter's name (or its position from 0) and SPEC one of:

- a number or `True`/`False`, with a type before it where it matters: `300`, `f32:1.5`
- an array: `zeros ones full nan arange rand randn randint`, then type and shape, then options:
  `randn:f32:1024x64:seed=3`, `full:u8:16:value=255`, `arange:i32:8:start=5:step=2`
- an array from a file: `weights.npy`
- the raw bytes of a parameter: `bytes:0a0b0c0d`
""",
    "E1014": """
one argument given twice

Each parameter of the kernel is given once, by its name or by its position.
""",
    "E1015": """
an argument's array cannot be made

The file cannot be read as a .npy array of a known element type, or the generator cannot make such values.
""",
    "E1016": """
an --expect that cannot be evaluated

`--expect 'res == a + b'` is a Python expression over the arguments' names, `np`, `math` and `functools`. The left side
of `==` is taken from what the kernel left behind, the right one from what it was given; both are numbers, and the right
side has the shape of the left one or can be broadcast to it.
""",
    "E1017": """
which kernel is to run

`ptxdsl run` runs one kernel. Where the file has several, name one with `--kernel`.
""",
    "E1018": """
arguments that do not fit the kernel

Each parameter is given one value by `--arg`, of its kind: numbers for scalars, arrays for pointers, an array with a box
for a TensorMap (`randn:bf16:256x64:box=64x64:swizzle=128B`). A struct's fields are given one by one: `--arg s.field=3`.
""",
    "E1019": """
options of the simulator with a launch on the GPU

Schedules, traces and timelines exist in the simulator alone: add `--target sim`.
""",
    "E1020": """
a launch without its sizes

The size of a block is given by `--block`, unless the kernel says it (`@kernel(threads=…)`); dynamic shared memory by
`--smem`, in bytes.
""",
    "E1021": """
an import that has changed

`Compiled.tir` and `Compiled.llvm_ir` are compiled again when they are asked for, and an imported file is another one
than when the PTX was made. Load the module again.
""",
    "E1022": """
nothing says what to save

`Compiled.save` goes by the suffix of the path: `.ptx`, `.cubin`, `.sass`, `.ll` (LLVM IR) or `.tir` (the typed IR).
""",
    "E1090": """
a damaged installation

ptxdsl finds its grammar and standard library inside the installed package, or beside it in a checkout. They are
missing: install it again.
""",
    "E1100": """
a grid, block or cluster that cannot be simulated

A simulated launch obeys the rules of the card that the PTX is for: at most 1024 threads a block, a grid that is a
multiple of the cluster, clusters from sm_90 on, and what the kernel itself declares (`.reqntid`, `.maxntid`,
`.reqnctapercluster`).
""",
    "E1101": """
arguments that do not fit the kernel's parameters

A simulated kernel takes one argument a parameter: an array (its address is given), a number, the parameter's bytes, or
a tensor map. Numbers must fit the parameter's size.
""",
    "E1102": """
shared memory beyond the target's limit

Static shared memory is at most 48 KiB; static and dynamic together at most what the target lends to a block.
""",
    "E1103": """
not a schedule

A schedule is `round-robin`, `random:SEED`, `slow:NAME` (a warp, `warp3` or `cta0.warp3`, a role's warps, `warps4-7`, or
a unit such as `tma`), or the text of a recorded one.
""",
    "E1110": """
an instruction that the simulator does not have

All such instructions of a kernel are reported before anything runs: an opcode, a type or a modifier that is not
executed (textures, surfaces, video instructions), or operands that do not fit the instruction. Take the kernel's path
for another target, or leave the instruction out for the simulation.
""",
    "E1111": """
a recursive call

The simulator executes a kernel with all its calls inlined, so a function cannot call itself, directly or by way of
others, and calls are nested at most a hundred deep. The message shows the chain. Write the recursion as a loop.
""",
    "E1112": """
a call that the simulator cannot follow

A call goes to a function with a body in the same PTX text, with as many results and arguments as it has, or to one of
the functions that the simulator has itself (`vprintf`, `__assertfail`). Calls through a function pointer and of
functions from other modules are not executed: link the module first, or compile it as one.
""",
    "E1113": """
a kernel that is too large

The simulator's limits are 100,000 instructions with all calls inlined, 4 MiB of registers of a warp (16,384 registers
that live from block to block), 16 MiB of shared memory and 512 KiB of local memory of a thread.
""",
    "E1114": """
no such kernel

A kernel is an `.entry` with a body in the PTX text, by the name that it has there. Without a name the text has exactly
one kernel.
""",
    "E1115": """
an operand that must be the same in all lanes

Some instructions take one value for the whole warp. The lanes that executed it together had different ones.
""",
    "E1116": """
a named barrier used wrongly

A block has barriers 0 to 15. All who use one for the same synchronisation must give the same thread count, a multiple
of 32, and as many threads must arrive. Give each role a barrier of its own.
""",
    "E1117": """
a cluster barrier used wrongly

Every thread of a cluster arrives once (`barrier.cluster.arrive`) and then waits once (`barrier.cluster.wait`).
""",
    "E1118": """
setmaxnreg used wrongly

The number of registers is 24 to 256 in steps of 8, `.inc` only raises and `.dec` only lowers it, and all four warps of
a warpgroup ask for the same.
""",
    "E1120": """
an access outside of memory

The simulated program read or wrote where it has no memory. The message names the nearest array or variable. Often an
index has no bound check for the last block, or a pointer was computed with the wrong element size. An array that was
given to the launch ends exactly where it ends.
""",
    "E1121": """
a misaligned access

An access of n bytes needs an address that is a multiple of n (of a vector: of all its elements together).
""",
    "E1122": """
a write to read-only memory

Constants, the kernel's parameters and arrays that NumPy has marked read-only cannot be written.
""",
    "E1123": """
memory of another state space

The address is not in the state space that the instruction names: `.shared::cta` reaches the block's own shared memory
alone, `.shared::cluster` that of the whole cluster.
""",
    "E1124": """
a member mask without the lane that executes it

The mask of a warp collective (`shfl.sync`, `vote.sync`, `bar.warp.sync`, …) must name every lane that executes it.
""",
    "E1125": """
the program trapped

It executed `trap` or `brkpt`: it found something wrong itself. If nothing could move before that but clocks, the notes
tell of the deadlock that a time-out in the program has met.
""",
    "E1126": """
an assertion failed

`debug_assert`, or CUDA's `assert`, was false in one thread.
""",
    "E1127": """
free of what was not allocated

`free` takes what `malloc` on the device gave, once.
""",
    "E1130": """
an mbarrier operation where no mbarrier is

The address is right for an mbarrier, but none has been initialised there, or it has been invalidated. One thread
executes `mbarrier.init`; the others that use the barrier come after a barrier of the CTA (`bar.sync`), and threads of
other CTAs after one of the cluster (`barrier.cluster`).
""",
    "E1131": """
an mbarrier that was written over

An mbarrier's 8 bytes are its own from `mbarrier.init` to `mbarrier.inval`. Something else has written there: a buffer
that is larger than the room it was given, an index that is out of range, or memory that was used again while the
barrier in it was alive.
""",
    "E1132": """
an mbarrier that is initialised while it lives

`mbarrier.init` on a live barrier is undefined. It is executed once, by one thread (not by every lane of a warp), and
`mbarrier.inval` ends the barrier's life before its memory becomes another one.
""",
    "E1133": """
a count that an mbarrier does not have

Counts of arrivals, those that a barrier is initialised with and those of one arrival, are 1 to 1048575.
""",
    "E1134": """
more arrivals than an mbarrier's phase has

A phase is complete when as many arrivals have come as the barrier was initialised with. One more arrives in a phase
where none is pending any more, or in the next phase although nobody has waited for the one before: the count is too
small, an arrival is made by all lanes of a warp where one of them was meant, or the wait before an arrival is missing.
""",
    "E1135": """
more bytes than an mbarrier's tx-count holds

The bytes that a phase still expects, or that have come without being expected, are at most 1048575. Expect the bytes of
each copy once, in the phase in which it completes.
""",
    "E1136": """
an mbarrier of another CTA

Other CTAs of the cluster may arrive on a barrier and announce bytes, and that without a state as the result. Waiting,
initialising and invalidating is for the CTA in whose shared memory the barrier is.
""",
    "E1137": """
a .noComplete arrival that completes a phase

`.noComplete` promises that the phase goes on after this arrival. The last one of a phase is made without it.
""",
    "E1138": """
a wait for a phase that an mbarrier cannot tell of

A barrier knows of the phase under way and of the one before it. A wait names one of them: by its parity, 0 or 1, or by
the state that an arrival in it returned.
""",
    "E1141": """
warps of a warpgroup that do not execute the same wgmma

The four warps of a warpgroup execute every `wgmma.mma_async` together: the same instruction, in the same order, with
the same matrix descriptors and the same scale-d. A warp took another branch, or computed a descriptor from its own
ids.
""",
    "E1142": """
wgmma in a warpgroup of fewer than four warps

A warpgroup is four consecutive warps, the first of which has a number divisible by four. The block has too few threads
for the last one: launch a multiple of 128 threads, and let whole warpgroups execute wgmma.
""",
    "E1143": """
wgmma.mma_async without a wgmma.fence before it

`wgmma.fence.sync.aligned` orders what a warp did to its registers before the products that read or write them. It
stands before the first `wgmma.mma_async` of a warpgroup, and again wherever those registers were used in between.
""",
    "E1144": """
a matrix that is not in shared memory

`ldmatrix` and `stmatrix` access the shared memory of the CTA. A generic address that they are given has to lie there.
""",
    "E1145": """
a scale selector that does not exist

The byte and thread selectors of an `mma` with block scaling choose which bytes of which lanes hold the scale factors.
With one factor a row the byte is 0 to 3, with two it is 0 or 2, with four it is 0; the thread is 0 or 1 for A and 0
to 3 for B.
""",
    "E1146": """
a matrix instruction in a warp that is not whole

A matrix lies in the registers of all 32 lanes of a warp, so none of them may be missing. A lane has returned before, or
the last warp of the block has fewer than 32 threads: launch whole warps, and let the lanes return together.
""",
    "E1147": """
metadata of a sparse matrix that means nothing

The metadata operand of a sparse product has fields of 4 bits: the numbers, of 2 bits each, of the two elements of four
that are not zero. Both must differ. The selector says which of four lanes hold the metadata; how many there are to
choose from depends on the shape and the type.
""",
    "E1148": """
a matrix wider than its swizzle

A K-major matrix operand of wgmma lies in rows of 32, 64 or 128 bytes, as its descriptor's swizzling says. One
instruction reads 32 bytes along K, of the dense matrix of a sparse product 64: a swizzle of 32 bytes is too narrow.
""",
    "E1150": """
a bulk copy that is not aligned

`cp.async.bulk` and its relatives move multiples of 16 bytes between addresses that are multiples of 16.
""",
    "E1151": """
a cp.async that reads more than it writes

The source size of a `cp.async` is at most its size: 4, 8 or 16 bytes. What it does not read is filled with zeros.
""",
    "E1152": """
an asynchronous copy to CTAs that cannot get it

The multicast mask has one bit a CTA of the cluster, by rank. The mbarrier that is told of a copy is in the CTA that
gets the data; with `.cta_group::2` it may be in the other CTA of the pair.
""",
    "E1153": """
a tensor map that does not fit its instruction

The instruction's dimension count is the map's, four rows are gathered from two-dimensional maps whose tile is one row,
and a reduction needs element types that have it. The address must be that of a tensor map: of a kernel parameter, or
of global memory that holds one.
""",
    "E1154": """
a tile that is not aligned in shared memory

Tensor copies want shared addresses that are multiples of 128. For swizzled tiles 1024 is the natural choice: the
pattern begins at a multiple of its own size, not at the tile.
""",
    "E1155": """
coordinates at which no tile can start

A row of a tile starts at a multiple of 16 bytes of the tensor: the innermost coordinate times the element's size. Tiles
that are loaded may start at negative coordinates, what is outside the tensor is filled; tiles that are stored may not.
""",
    "E1160": """
tensor memory allocated or deallocated wrongly

`tcgen05.alloc` gives 32, 64, 128, 256 or 512 columns, never more than the allocation of the CTA before it, and none
after `tcgen05.relinquish_alloc_permit`. `tcgen05.dealloc` takes back exactly what an alloc has given: the same address,
the same number of columns. With `.cta_group::2` one warp of each CTA of the pair does this together with the other.
""",
    "E1161": """
an address of tensor memory that is not allocated, or not there

A CTA has 128 lanes and 512 columns, and may touch the columns that `tcgen05.alloc` has given it. An address has the
lane in its high 16 bits and the column in its low 16 bits. Some operands begin at certain lanes only.
""",
    "E1162": """
lanes of tensor memory that a warp does not reach

Of four warps, the first of which has a number divisible by four, each reaches 32 lanes by `tcgen05.ld` and
`tcgen05.st`: lanes 0-31, 32-63, 64-95, 96-127. The lane in the address (its high 16 bits) is the first of the access.
""",
    "E1163": """
a shared-memory descriptor of tcgen05 that means nothing

It has 0b001 in bits 46-48 (descriptors of wgmma do not), the swizzling mode in bits 61-63, and addresses and strides in
units of 16 bytes. Transposed operands of 32-bit elements need 128-byte swizzling with 32-byte atoms; others must not
have it.
""",
    "E1164": """
an instruction descriptor of tcgen05.mma that means nothing

Types, M, N, scale factor ids and the sparsity bit must fit the instruction's kind and its `.cta_group`, `.ws`, `.sp`
and `.scale_vec`. The message names the field.
""",
    "E1165": """
tensor memory touched while something else is under way in it

`tcgen05.ld` and `tcgen05.st` are asynchronous until `tcgen05.wait::ld` and `tcgen05.wait::st`; `mma`, `cp` and `shift`
are until a `tcgen05.commit` arrives at its mbarrier that the same thread has issued after them. What touches the same
lanes and columns before that, and one of the two writes, is a race; `cp` and `mma` of one CTA are in order among
themselves.
""",
    "E1166": """
tensor memory that is never deallocated

All columns that a kernel allocates must be deallocated before its CTA exits. On the card the next CTA on the same SM
waits for them, and the launch hangs.
""",
    "E1167": """
a pair of CTAs that is not there

`.cta_group::2` is work of two CTAs of a cluster whose ranks differ in the last bit: the cluster has an even number of
CTAs, and neither exits before the work is done. All tcgen05 instructions of a kernel have the same `.cta_group`.
""",
    "E1180": """
lanes of a warp that never meet

An `.aligned` instruction is executed by all lanes of its warp together, and a warp collective by all lanes in its mask.
Here the lanes wait for one another at different instructions: it stands on both sides of a branch, or on one only.
On the card this is undefined behaviour.
""",
    "E1185": """
the simulation's step limit

It ran for as many instructions as it may. The notes show where the warps were: if that is a loop without an end, this
is the fault; else raise the limit.
""",
    "E1186": """
the simulation's memory limit

The variables of the module, and shared and local memory, registers and heap of all blocks that run at once, need more
than the limit. Blocks that wait for one another must all be there at once, as on the card.
""",
    "E1187": """
interrupted

The simulation was stopped. The notes show where its warps were.
""",
    "E1190": """
deadlock

Nothing in the simulated machine can move any more: every warp and every asynchronous operation waits for something that
only another one of them could do. The message and notes say who waits where and for what, who has served that barrier
before, and why he does not come; if they wait for one another in a circle, the help line gives the circle.

A warp that polls (a loop around `mbarrier.test_wait`, a volatile load or a failing atomic operation, with or without
`nanosleep`) and comes back with nothing changed counts as waiting. Time-outs by the clock are let pass first.
""",
    "E1195": """
a recorded schedule that does not fit

A recorded schedule names the warp or the asynchronous operation of every turn. It can be replayed for the same PTX, the
same launch and the same arguments; here it names one that cannot move at that turn.
""",
    "E1201": """
missing arrive

A wait on an mbarrier is never satisfied, because arrivals that the phase needs are not made: on a path, in a trip, or
at all. The notes show the wait and where the barrier gets its other arrivals. Arrive on every path, once a phase.
""",
    "E1202": """
wrong arrival count

An mbarrier gets more or fewer arrivals a phase than it was initialised with. Every lane that executes `arrive`,
`commit` or `release` counts: 32 of a warp, 128 of a warpgroup, one where a single lane is elected. With too few the
phase never completes, with too many it completes early.
""",
    "E1203": """
wrong parity

A wait can be satisfied by another phase than the one that is meant, or miss it. A fresh barrier lets a wait for parity
1 pass and a wait for parity 0 wait for its first phase; the parity changes once in a turn of the ring.
""",
    "E1204": """
byte mismatch

The bytes that `expect_bytes` announces on an mbarrier are not those that the copies to it bring, on some path or in
some block. With too few bytes coming the phase never completes, with too many it completes before they are there.
""",
    "E1205": """
use before init is visible

An mbarrier may be used before its initialisation is known to whoever uses it. Between `init` and the first use there
must be a barrier of the block, or of the cluster where another block uses it; and `fence_mbarrier_init()` by the thread
that initialises, where copies, tensor cores or another block use it.
""",
    "E1206": """
re-init or inval while live

An mbarrier is initialised again, invalidated, or its memory used for something else while others may still use it. End
its life once, by `inval`, after a barrier that everybody who uses it has passed.
""",
    "E1207": """
slot read before full

Shared or tensor memory is read, and nothing orders that read after the write that fills it: no wait, one on another
barrier or phase, or a commit that comes before the write. The notes show the write.
""",
    "E1208": """
slot overwritten before release

Shared or tensor memory is written, and nothing orders that write after an earlier read of it, or after another write:
the stage is not acquired, or it was released before it was read. The notes show the other access.
""",
    "E1209": """
missing proxy fence

Bulk and tensor copies, wgmma and tcgen05 see memory through the async proxy. What threads have written with plain
stores is visible to them only after `fence_proxy_async()`, by the threads that wrote and before the barrier that hands
it on; and before an asynchronous write overwrites what threads have read, those threads execute it too. (What
asynchronous work has written or read is in order once its completion has been waited for.)
""",
    "E1210": """
undrained wgmma, bulk or cp.async read

An asynchronous operation that reads a slot has been issued, and the slot is released or overwritten before the
operation is known to have read it. Wait first: `wgmma_wait_group`, `cp_async_bulk_wait_group`, `cp_async_wait_group`;
of tcgen05, let `tcgen05.commit` arrive on the barrier that gives the slot back.
""",
    "E1211": """
stale stage index

A slot is accessed by another index than that of the barrier which guards it: one taken before or after `step()`, or
counted on its own. Take index, barrier and phase from the same state.
""",
    "E1212": """
cyclic wait

Some roles wait for one another in a circle, each for what the next one does only after its own wait. The notes show the
circle.
""",
    "E1213": """
exit with work in flight

Threads of a block exit while asynchronous work of theirs is under way, or while another block of the cluster may still
access their shared memory or arrive on their barriers. The memory may belong to another block by then. Wait for the
work, and put a cluster barrier before the exit where others reach into the block.
""",
    "E1214": """
divergent collective

An instruction that all threads of a warp, warpgroup or block execute together stands where only some of them come by.
""",
    "E1215": """
data race

Two threads access the same memory, at least one of them writes, and nothing orders the two: no barrier of the block or
cluster, no mbarrier, no flag with release and acquire. The notes show the other access.
""",
    "W0802": """
a warning of ptxas

Shown at the line that it concerns.
""",
    "W0803": """
a performance note of ptxas

ptxas tells where it had to do something slow: serialised wgmma, ignored launch bounds. Shown at the line that it
concerns.
""",
    "W0805": """
what a kernel uses

Registers of a thread, static shared memory of a block, and bytes of registers spilled to memory (stores and loads),
as ptxas counts them. Spills cost time: use fewer values at once, or allow more registers.
""",
    "W1141": """
registers of a wgmma.mma_async that are used before it is waited for

Accumulators hold their results, and the registers of A may be changed, after a `wgmma.wait_group` that covers the
instruction. ptxas sees most such uses, copies of accumulators that a compiler put there among them, and then makes
every product wait for its result ("wgmma.mma_async instructions are serialized"); the simulator does the same.
""",
    "W1191": """
asynchronous work that outlives its block

All threads of the block have exited while a copy or another asynchronous operation of theirs was under way. On the card
its shared memory may belong to another block by then. Wait for it before the last thread exits.
""",
    "W1192": """
bytes that nobody expected

When the last thread of a block exited, an mbarrier of its had got more bytes from asynchronous copies than expect_tx
had announced. Whoever waited for a phase of it may have gone on before all of its bytes were there, and the surplus
counts for the next phase. The notes show what was announced and what came. Announce as many bytes as the copies bring,
on every path, and in every block that a multicast writes to.
""",
    "W1193": """
a fence by a thread that has initialised no mbarrier

fence.mbarrier_init makes the initialisations that its own thread has executed known to asynchronous copies and to other
blocks of the cluster. Here one thread initialises a barrier and another one executes the fence, which orders nothing
then. It mostly works, and fails rarely: the simulator cannot show that by a run.
""",
    "W1194": """
an mbarrier's memory was written over

A barrier lived until the block's end in memory that has been used for something else. That is undefined: the hardware
may keep state of a barrier until mbarrier.inval ends its life.
""",
    "W1195": """
one named barrier, two groups of warps

Some warps have met at a named barrier, and other warps at the same one, with the same thread count. In this run one
group came after the other; when they come at once, the hardware counts whoever arrives first, and warps of different
groups let one another pass. Give each role a barrier id of its own (1 to 15).
""",
    "W1290": """
not provable here

The checker met something that its model does not have, or that it cannot decide; nothing is said about the kernel then.
The message says what, its line where. Often little is missing: `@kernel(threads=…)` for the size of the block,
`@kernel(cluster=…)` for that of the cluster, trip counts that roles compute from the same values in the same way,
barriers that the kernel initialises itself. The trace check and the simulator look at one run instead.
""",
    "W1291": """
a finding is allowed without a reason

`# check: allow E1203: reason` at the line of a finding says that it is known and wanted. Without the reason the finding
is replaced by this warning.
""",
}
