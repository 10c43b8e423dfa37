"""LLVM IR of the two functions that make a launch without the interpreter. Data only; ``native.py`` says what they do.

They are Python's own kind of function (PyMethodDef, METH_FASTCALL and METH_NOARGS) and use its C API. ``self`` is a
bytes object with a call's description, laid out by ``native.py``:

    byte 0    address of cuLaunchKernelEx        8  kernel          16  number of the plan      24  ring of the latest
         32   i32 how to get the stream: 0 it is at 40, 1 by a C function (DLPack's current_work_stream), 2 by an object
         36   i32 device                        40  stream, function or object        48  the device as an int object
         56   address of cuCtxGetDevice, or 0   64  CUlaunchConfig (56 bytes)
        120   number of arguments              128  bytes of the parameters
        136   40 bytes an argument: i32 kind, i32 offset, its type object, and three numbers a, b, c by the kind
              after these, for a prepared launch, the parameters themselves

    kind 0 integer: a least, b greatest value    1 unsigned of 64 bits    2 bool: a True    3 real: a 1 of int, b size
         4 tensor: a DLPack's dltensor_from_py_object_no_sync, b type (code, bits, lanes), c alignment - 1
         5 128 bytes: a name of the attribute (0: the object itself), b bytes' type object

Both give the driver's result as an int, or -1 where the arguments are not such as described.
"""

from __future__ import annotations

# What is called by name; the addresses are those of the running interpreter.
API = (
    "PyBytes_AsString", "PyBytes_Size", "PyTuple_Size", "PyTuple_GetItem", "PyLong_AsLongLongAndOverflow",
    "PyLong_AsUnsignedLongLong", "PyLong_AsDouble", "PyFloat_AsDouble", "PyLong_FromLongLong", "PyObject_GetAttr",
    "PyObject_CallOneArg", "Py_DecRef", "Py_IncRef", "PyErr_Occurred", "PyErr_Clear", "PyEval_SaveThread",
    "PyEval_RestoreThread",
)  # fmt: skip
OBJECTS = ("_Py_NoneStruct", "PyLong_Type")

CHECKED, PREPARED = "ptxdsl_checked", "ptxdsl_prepared"

CODE = r"""
@_Py_NoneStruct = external global i8
@PyLong_Type = external global i8

declare ptr @PyBytes_AsString(ptr)
declare i64 @PyBytes_Size(ptr)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare i64 @PyLong_AsUnsignedLongLong(ptr)
declare double @PyLong_AsDouble(ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare ptr @PyObject_CallOneArg(ptr, ptr)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_Clear()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare double @llvm.fabs.f64(double)

; An int object as 64 unsigned bits; whether it is one in range.
define internal i1 @unsigned(ptr %object, ptr %out) {
  %value = call i64 @PyLong_AsUnsignedLongLong(ptr %object)
  store i64 %value, ptr %out
  %suspect = icmp eq i64 %value, -1
  br i1 %suspect, label %ask, label %good
ask:
  %error = call ptr @PyErr_Occurred()
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %good, label %bad
bad:
  call void @PyErr_Clear()
  ret i1 false
good:
  ret i1 true
}

; The stream of a call for which none is given.
define internal i1 @current(ptr %d, ptr %out) {
  %mode_at = getelementptr i8, ptr %d, i64 32
  %mode = load i32, ptr %mode_at
  %stream_at = getelementptr i8, ptr %d, i64 40
  %stream = load ptr, ptr %stream_at
  switch i32 %mode, label %fixed [ i32 1, label %function
                                   i32 2, label %object ]
fixed:
  store ptr %stream, ptr %out
  ret i1 true
function:
  %device_at = getelementptr i8, ptr %d, i64 36
  %device = load i32, ptr %device_at
  %result = call i32 %stream(i32 2, i32 %device, ptr %out)
  %done = icmp eq i32 %result, 0
  br i1 %done, label %good, label %bad
object:
  %number_at = getelementptr i8, ptr %d, i64 48
  %number = load ptr, ptr %number_at
  %answer = call ptr @PyObject_CallOneArg(ptr %stream, ptr %number)
  %none = icmp eq ptr %answer, null
  br i1 %none, label %bad, label %read
read:
  %read_well = call i1 @unsigned(ptr %answer, ptr %out)
  call void @Py_DecRef(ptr %answer)
  ret i1 %read_well
bad:
  call void @PyErr_Clear()
  ret i1 false
good:
  ret i1 true
}

; The launch itself, without the interpreter's lock.
define internal ptr @submit(ptr %d, ptr %stream, ptr %pointers) {
  %config = alloca [56 x i8], align 8
  %now = alloca i32
  %ask_at = getelementptr i8, ptr %d, i64 56
  %ask = load ptr, ptr %ask_at
  %one = icmp eq ptr %ask, null
  br i1 %one, label %ready, label %look
look:
  %result = call i32 %ask(ptr %now)
  %known = icmp eq i32 %result, 0
  %device_at = getelementptr i8, ptr %d, i64 36
  %device = load i32, ptr %device_at
  %current = load i32, ptr %now
  %same = icmp eq i32 %current, %device
  %go = and i1 %known, %same
  br i1 %go, label %ready, label %refuse
ready:
  %given = getelementptr i8, ptr %d, i64 64
  call void @llvm.memcpy.p0.p0.i64(ptr %config, ptr %given, i64 56, i1 false)
  %stream_at = getelementptr i8, ptr %config, i64 32
  store ptr %stream, ptr %stream_at
  %ring_at = getelementptr i8, ptr %d, i64 24
  %ring = load ptr, ptr %ring_at
  %number_at = getelementptr i8, ptr %d, i64 16
  %number = load i64, ptr %number_at
  %count = load i64, ptr %ring
  %next = add i64 %count, 1
  store i64 %next, ptr %ring
  %slot = and i64 %count, 7
  %place = getelementptr i64, ptr %ring, i64 %slot
  %entry = getelementptr i64, ptr %place, i64 1
  store i64 %number, ptr %entry
  %launch = load ptr, ptr %d
  %kernel_at = getelementptr i8, ptr %d, i64 8
  %kernel = load ptr, ptr %kernel_at
  %thread = call ptr @PyEval_SaveThread()
  %status = call i32 %launch(ptr %config, ptr %kernel, ptr %pointers, ptr null)
  call void @PyEval_RestoreThread(ptr %thread)
  %wide = sext i32 %status to i64
  %made = call ptr @PyLong_FromLongLong(i64 %wide)
  ret ptr %made
refuse:
  %no = call ptr @PyLong_FromLongLong(i64 -1)
  ret ptr %no
}

; Row-major without gaps; dimensions of length 1 may have any stride.
define internal i1 @contiguous(ptr %tensor) {
  %count_at = getelementptr i8, ptr %tensor, i64 16
  %count = load i32, ptr %count_at
  %shape_at = getelementptr i8, ptr %tensor, i64 24
  %shape = load ptr, ptr %shape_at
  %strides_at = getelementptr i8, ptr %tensor, i64 32
  %strides = load ptr, ptr %strides_at
  %absent = icmp eq ptr %strides, null
  br i1 %absent, label %good, label %begin
begin:
  %wide = zext i32 %count to i64
  br label %loop
loop:
  %left = phi i64 [ %wide, %begin ], [ %i, %next ]
  %expected = phi i64 [ 1, %begin ], [ %product, %next ]
  %done = icmp eq i64 %left, 0
  br i1 %done, label %good, label %look
look:
  %i = sub i64 %left, 1
  %length_at = getelementptr i64, ptr %shape, i64 %i
  %length = load i64, ptr %length_at
  %stride_at = getelementptr i64, ptr %strides, i64 %i
  %stride = load i64, ptr %stride_at
  %same = icmp eq i64 %stride, %expected
  %single = icmp eq i64 %length, 1
  %fits = or i1 %same, %single
  br i1 %fits, label %next, label %bad
next:
  %product = mul i64 %expected, %length
  br label %loop
bad:
  ret i1 false
good:
  ret i1 true
}

define internal i1 @integer(ptr %object, ptr %a, ptr %place) {
  %cell = alloca i32
  %value = call i64 @PyLong_AsLongLongAndOverflow(ptr %object, ptr %cell)
  %over = load i32, ptr %cell
  %least_at = getelementptr i8, ptr %a, i64 16
  %least = load i64, ptr %least_at
  %most_at = getelementptr i8, ptr %a, i64 24
  %most = load i64, ptr %most_at
  %inside = icmp eq i32 %over, 0
  %above = icmp sge i64 %value, %least
  %below = icmp sle i64 %value, %most
  %between = and i1 %above, %below
  %good = and i1 %inside, %between
  store i64 %value, ptr %place, align 1
  ret i1 %good
}

define internal i1 @real(ptr %object, ptr %a, ptr %place) {
  %of_int_at = getelementptr i8, ptr %a, i64 16
  %of_int = load i64, ptr %of_int_at
  %size_at = getelementptr i8, ptr %a, i64 24
  %size = load i64, ptr %size_at
  %is_float = icmp eq i64 %of_int, 0
  br i1 %is_float, label %float, label %int
float:
  %exact = call double @PyFloat_AsDouble(ptr %object)
  br label %have
int:
  %rounded = call double @PyLong_AsDouble(ptr %object)
  %suspect = fcmp oeq double %rounded, -1.0
  br i1 %suspect, label %ask, label %have
ask:
  %error = call ptr @PyErr_Occurred()
  %fine = icmp eq ptr %error, null
  br i1 %fine, label %have, label %clear
clear:
  call void @PyErr_Clear()
  ret i1 false
have:
  %value = phi double [ %exact, %float ], [ %rounded, %int ], [ %rounded, %ask ]
  %double = icmp eq i64 %size, 8
  br i1 %double, label %whole, label %short
whole:
  store double %value, ptr %place, align 1
  ret i1 true
short:
  %narrow = fptrunc double %value to float
  store float %narrow, ptr %place, align 1
  %back = fpext float %narrow to double
  %size_of = call double @llvm.fabs.f64(double %back)
  %infinite = fcmp oeq double %size_of, 0x7FF0000000000000
  %before = call double @llvm.fabs.f64(double %value)
  %was_infinite = fcmp oeq double %before, 0x7FF0000000000000
  %same = icmp eq i1 %infinite, %was_infinite
  ret i1 %same
}

define internal i1 @tensor(ptr %d, ptr %object, ptr %a, ptr %place) {
  %tensor = alloca [48 x i8], align 8
  %function_at = getelementptr i8, ptr %a, i64 16
  %function = load ptr, ptr %function_at
  %result = call i32 %function(ptr %object, ptr %tensor)
  %done = icmp eq i32 %result, 0
  br i1 %done, label %look, label %clear
clear:
  call void @PyErr_Clear()
  ret i1 false
look:
  %kind_at = getelementptr i8, ptr %tensor, i64 8
  %kind = load i32, ptr %kind_at
  %cuda = icmp eq i32 %kind, 2
  %device_at = getelementptr i8, ptr %tensor, i64 12
  %device = load i32, ptr %device_at
  %own_at = getelementptr i8, ptr %d, i64 36
  %own = load i32, ptr %own_at
  %here = icmp eq i32 %device, %own
  %type_at = getelementptr i8, ptr %tensor, i64 20
  %type = load i32, ptr %type_at
  %wanted_at = getelementptr i8, ptr %a, i64 24
  %wanted = load i32, ptr %wanted_at
  %fits = icmp eq i32 %type, %wanted
  %placed = and i1 %cuda, %here
  %usable = and i1 %placed, %fits
  br i1 %usable, label %order, label %bad
order:
  %rows = call i1 @contiguous(ptr %tensor)
  %data = load i64, ptr %tensor
  %start_at = getelementptr i8, ptr %tensor, i64 40
  %start = load i64, ptr %start_at
  %address = add i64 %data, %start
  store i64 %address, ptr %place, align 1
  %mask_at = getelementptr i8, ptr %a, i64 32
  %mask = load i64, ptr %mask_at
  %rest = and i64 %address, %mask
  %aligned = icmp eq i64 %rest, 0
  %good = and i1 %rows, %aligned
  ret i1 %good
bad:
  ret i1 false
}

define internal i1 @bytes(ptr %object, ptr %a, ptr %place) {
  %name_at = getelementptr i8, ptr %a, i64 16
  %name = load ptr, ptr %name_at
  %itself = icmp eq ptr %name, null
  br i1 %itself, label %own, label %get
own:
  call void @Py_IncRef(ptr %object)
  br label %have
get:
  %value = call ptr @PyObject_GetAttr(ptr %object, ptr %name)
  %none = icmp eq ptr %value, null
  br i1 %none, label %clear, label %have
clear:
  call void @PyErr_Clear()
  ret i1 false
have:
  %data = phi ptr [ %object, %own ], [ %value, %get ]
  %type_at = getelementptr i8, ptr %data, i64 8
  %type = load ptr, ptr %type_at
  %wanted_at = getelementptr i8, ptr %a, i64 24
  %wanted = load ptr, ptr %wanted_at
  %is_bytes = icmp eq ptr %type, %wanted
  br i1 %is_bytes, label %measure, label %drop
measure:
  %size = call i64 @PyBytes_Size(ptr %data)
  %fits = icmp eq i64 %size, 128
  br i1 %fits, label %copy, label %drop
copy:
  %start = call ptr @PyBytes_AsString(ptr %data)
  call void @llvm.memcpy.p0.p0.i64(ptr %place, ptr %start, i64 128, i1 false)
  call void @Py_DecRef(ptr %data)
  ret i1 true
drop:
  call void @Py_DecRef(ptr %data)
  ret i1 false
}

; checked(arguments: tuple, stream) -> int
define ptr @ptxdsl_checked(ptr %self, ptr %arguments, i64 %argument_count) {
  %cell = alloca i64
  %d = call ptr @PyBytes_AsString(ptr %self)
  %tuple = load ptr, ptr %arguments
  %stream_at = getelementptr ptr, ptr %arguments, i64 1
  %given = load ptr, ptr %stream_at
  %count_at = getelementptr i8, ptr %d, i64 120
  %count = load i64, ptr %count_at
  %length = call i64 @PyTuple_Size(ptr %tuple)
  %as_many = icmp eq i64 %length, %count
  br i1 %as_many, label %begin, label %refuse
begin:
  %size_at = getelementptr i8, ptr %d, i64 128
  %size = load i64, ptr %size_at
  %more = add i64 %size, 16
  %room = alloca i8, i64 %more, align 64
  %entries = add i64 %count, 1
  %pointers = alloca ptr, i64 %entries, align 16
  %table = getelementptr i8, ptr %d, i64 136
  br label %loop
loop:
  %i = phi i64 [ 0, %begin ], [ %following, %next ]
  %all = icmp eq i64 %i, %count
  br i1 %all, label %which, label %look
look:
  %distance = mul i64 %i, 40
  %a = getelementptr i8, ptr %table, i64 %distance
  %object = call ptr @PyTuple_GetItem(ptr %tuple, i64 %i)
  %type_at = getelementptr i8, ptr %object, i64 8
  %type = load ptr, ptr %type_at
  %wanted_at = getelementptr i8, ptr %a, i64 8
  %wanted = load ptr, ptr %wanted_at
  %offset_at = getelementptr i8, ptr %a, i64 4
  %offset = load i32, ptr %offset_at
  %wide = zext i32 %offset to i64
  %place = getelementptr i8, ptr %room, i64 %wide
  %pointer = getelementptr ptr, ptr %pointers, i64 %i
  store ptr %place, ptr %pointer
  %same = icmp eq ptr %type, %wanted
  br i1 %same, label %kinds, label %refuse
kinds:
  %kind = load i32, ptr %a
  switch i32 %kind, label %refuse [ i32 0, label %integer
                                    i32 1, label %unsigned
                                    i32 2, label %bool
                                    i32 3, label %real
                                    i32 4, label %tensor
                                    i32 5, label %bytes ]
integer:
  %r0 = call i1 @integer(ptr %object, ptr %a, ptr %place)
  br i1 %r0, label %next, label %refuse
unsigned:
  %r1 = call i1 @unsigned(ptr %object, ptr %cell)
  %unsigned_value = load i64, ptr %cell
  store i64 %unsigned_value, ptr %place, align 1
  br i1 %r1, label %next, label %refuse
bool:
  %true_at = getelementptr i8, ptr %a, i64 16
  %true = load ptr, ptr %true_at
  %is_true = icmp eq ptr %object, %true
  %bit = zext i1 %is_true to i64
  store i64 %bit, ptr %place, align 1
  br label %next
real:
  %r3 = call i1 @real(ptr %object, ptr %a, ptr %place)
  br i1 %r3, label %next, label %refuse
tensor:
  %r4 = call i1 @tensor(ptr %d, ptr %object, ptr %a, ptr %place)
  br i1 %r4, label %next, label %refuse
bytes:
  %r5 = call i1 @bytes(ptr %object, ptr %a, ptr %place)
  br i1 %r5, label %next, label %refuse
next:
  %following = add i64 %i, 1
  br label %loop
which:
  %is_none = icmp eq ptr %given, @_Py_NoneStruct
  br i1 %is_none, label %own, label %other
own:
  %asked = call i1 @current(ptr %d, ptr %cell)
  br i1 %asked, label %go, label %refuse
other:
  %stream_type_at = getelementptr i8, ptr %given, i64 8
  %stream_type = load ptr, ptr %stream_type_at
  %is_int = icmp eq ptr %stream_type, @PyLong_Type
  br i1 %is_int, label %convert, label %refuse
convert:
  %converted = call i1 @unsigned(ptr %given, ptr %cell)
  br i1 %converted, label %go, label %refuse
go:
  %stream = load ptr, ptr %cell
  %made = call ptr @submit(ptr %d, ptr %stream, ptr %pointers)
  ret ptr %made
refuse:
  %no = call ptr @PyLong_FromLongLong(i64 -1)
  ret ptr %no
}

; prepared() -> int
define ptr @ptxdsl_prepared(ptr %self, ptr %nothing) {
  %cell = alloca i64
  %d = call ptr @PyBytes_AsString(ptr %self)
  %count_at = getelementptr i8, ptr %d, i64 120
  %count = load i64, ptr %count_at
  %entries = add i64 %count, 1
  %pointers = alloca ptr, i64 %entries, align 16
  %table = getelementptr i8, ptr %d, i64 136
  %whole = mul i64 %count, 40
  %image = getelementptr i8, ptr %table, i64 %whole
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %following, %next ]
  %all = icmp eq i64 %i, %count
  br i1 %all, label %which, label %next
next:
  %distance = mul i64 %i, 40
  %a = getelementptr i8, ptr %table, i64 %distance
  %offset_at = getelementptr i8, ptr %a, i64 4
  %offset = load i32, ptr %offset_at
  %wide = zext i32 %offset to i64
  %place = getelementptr i8, ptr %image, i64 %wide
  %pointer = getelementptr ptr, ptr %pointers, i64 %i
  store ptr %place, ptr %pointer
  %following = add i64 %i, 1
  br label %loop
which:
  %asked = call i1 @current(ptr %d, ptr %cell)
  br i1 %asked, label %go, label %refuse
go:
  %stream = load ptr, ptr %cell
  %made = call ptr @submit(ptr %d, ptr %stream, ptr %pointers)
  ret ptr %made
refuse:
  %no = call ptr @PyLong_FromLongLong(i64 -1)
  ret ptr %no
}
"""
