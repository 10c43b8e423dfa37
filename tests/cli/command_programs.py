"""Programs that the tests of the command compile."""

GOOD = """\
@kernel
def add(a: Pointer[Float32, MutAnyOrigin], n: Int32):
    var i = Int32(thread_idx.x)
    if i < n:
        a[unsafe_offset=i] = a[unsafe_offset=i] + 1.0
"""
