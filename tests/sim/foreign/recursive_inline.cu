// noinline functions, a switch, local arrays and 64-bit division
// arch: sm_80
// launch: grid 1, block 64
// args: x=randint:u64:64:seed=20; out=zeros:u64:64
// expect: out == np.array([(int(v) // (i % 7 + 1) + [11, 22, 33, 44, 55][int(v) % 5] * i) % 2**64 for i, v in enumerate(x)], np.uint64)
typedef unsigned long long u64;
__device__ __noinline__ u64 divide(u64 a, u64 b) { return a / b; }
__device__ __noinline__ u64 pick(u64 v) {
  switch (v % 5) { case 0: return 11; case 1: return 22; case 2: return 33; case 3: return 44; default: return 55; }
}
extern "C" __global__ void recursive_inline(const u64* x, u64* out) {
  u64 table[8];
  for (int j = 0; j < 8; ++j) table[j] = j + 1;
  int i = threadIdx.x;
  out[i] = divide(x[i], table[i % 7]) + pick(x[i]) * i;
}
