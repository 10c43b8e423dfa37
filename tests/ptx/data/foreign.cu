// CUDA C++ of which nvcc makes PTX that our own compiler never writes: calls, tables, switches, inline assembly.
#include <cstdio>

struct Big { int a[12]; };
struct Linked { int value; const int *at; double weight; };

__device__ int table[5] = {1, 2, 3, 4, 5};
__constant__ float factors[4] = {1.5f, -2.f, 3e10f, 0.1f};
__device__ Linked linked = {3, table, 2.5};

__device__ int successor(int x) { return x + 1; }
__device__ int triple(int x) { return x * 3; }
__device__ int (*functions[2])(int) = {successor, triple};

__device__ __noinline__ Big changed(Big b, int i) { b.a[i]++; return b; }
__device__ int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }

__global__ void calls(Big b, int *x, int i) {
  x[0] = changed(b, i).a[i] + factorial(i);
  x[1] = functions[i & 1](x[1]) + *linked.at;
  if (x[2] < 0) printf("%d %f\n", i, factors[i & 3]);
}

__global__ void assembly(int *x, int n) {
  extern __shared__ int dynamic[];
  __shared__ int fixed[32];
  for (int i = 0; i < n; ++i) {
    asm volatile("{ .reg .pred p; .reg .b32 %%t<3>; setp.ne.b32 p, %0, 0; mov.b32 %%t1, 5; @p bra L1;\n"
                 "add.s32 %%t1, %%t1, 3; L1: mov.b32 %0, %%t1; }" : "+r"(x[i]));
    fixed[i & 31] = x[i];
  }
  __syncthreads();
  dynamic[threadIdx.x] = __shfl_down_sync(~0u, fixed[threadIdx.x & 31], 1);
  switch (n) {
    case 0: x[0] = atomicAdd(x + 1, 7); break;
    case 1: x[1] = __popc(n) / n; break;
    case 2: x[2] = dynamic[n]; break;
    case 3: x[3] = __vadd4(n, x[4]); break;
    case 4: __trap();
    default: x[5] = __float2int_rn(factors[n & 3]);
  }
}
