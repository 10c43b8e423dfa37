; From Python's objects to a kernel's parameters: one function for each kind of argument, whether it is such as described.
;
; An argument's description has 40 bytes: i32 kind, i32 offset of the parameter, the type object, and three numbers a, b, c
; by the kind:
;
;     0 integer: a least, b greatest value    1 unsigned of 64 bits    2 bool: a True    3 real: a 1 of int, b size
;     4 tensor: a DLPack's dltensor_from_py_object_no_sync, b type (code, bits, lanes), c alignment - 1
;     5 128 bytes: a name of the attribute (0: the object itself), b name of another, c what that must be (0: anything)

@_Py_NoneStruct = external global i8
@PyLong_Type = external global i8
@PyBytes_Type = external global i8

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
  %form_at = getelementptr i8, ptr %a, i64 32
  %form = load ptr, ptr %form_at
  %any = icmp eq ptr %form, null
  br i1 %any, label %read, label %compare
compare:
  %form_name_at = getelementptr i8, ptr %a, i64 24
  %form_name = load ptr, ptr %form_name_at
  %found = call ptr @PyObject_GetAttr(ptr %object, ptr %form_name)
  %no_form = icmp eq ptr %found, null
  br i1 %no_form, label %clear, label %have_form
have_form:
  call void @Py_DecRef(ptr %found)  ; only its address is compared
  %same = icmp eq ptr %found, %form
  br i1 %same, label %read, label %other
other:
  ret i1 false
read:
  %value = call ptr @PyObject_GetAttr(ptr %object, ptr %name)
  %none = icmp eq ptr %value, null
  br i1 %none, label %clear, label %have
clear:
  call void @PyErr_Clear()
  ret i1 false
have:
  %data = phi ptr [ %object, %own ], [ %value, %read ]
  %type_at = getelementptr i8, ptr %data, i64 8
  %type = load ptr, ptr %type_at
  %is_bytes = icmp eq ptr %type, @PyBytes_Type
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
