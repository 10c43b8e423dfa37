// a two-stage pipeline of cp.async through __pipeline_memcpy_async
// arch: sm_80
// launch: grid 2, block 64
// args: n=i32:10; x=randint:i32:1280:seed=15; out=zeros:i32:1280
// expect: out == x * 3 + 1
#include <cuda_pipeline.h>
extern "C" __global__ void cp_async_pipeline(int n, const int* x, int* out) {
  __shared__ int stage[2][64];
  const int* mine = x + blockIdx.x * 64 * n;
  int t = threadIdx.x;
  __pipeline_memcpy_async(&stage[0][t], &mine[t], 4);
  __pipeline_commit();
  for (int i = 0; i < n; ++i) {
    if (i + 1 < n) __pipeline_memcpy_async(&stage[(i + 1) % 2][t], &mine[(i + 1) * 64 + t], 4);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    out[(blockIdx.x * n + i) * 64 + t] = stage[i % 2][t] * 3 + 1;
    __syncthreads();
  }
}
