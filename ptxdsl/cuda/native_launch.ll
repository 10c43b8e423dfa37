; The launches, functions of Python's own kind (PyMethodDef, METH_FASTCALL and METH_NOARGS). ``self`` is a bytes object with
; a call's description, laid out by native.py:
;
;     byte 0    address of cuLaunchKernelEx        8  kernel          16  number of the plan      24  ring of the latest
;          32   i32 how to get the stream: 0 it is at 40, 1 by a C function (DLPack's current_work_stream), 2 by an object
;          36   i32 device                        40  stream, function or object        48  the device as an int object
;          56   address of cuCtxGetDevice, or 0   64  CUlaunchConfig (56 bytes)
;         120   number of arguments              128  bytes of the parameters
;         136   the arguments' descriptions (native_arguments.ll)
;               after these, for a prepared launch, the parameters themselves
;
; Both give the driver's result as an int, or -1 where the arguments are not such as described.

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
