// cuda::barrier between a producing and a consuming warp
// arch: sm_80
// launch: grid 1, block 64
// args: n=i32:9; x=randint:i32:288:seed=16:low=-99:high=100; out=zeros:i32:288
// expect: out == np.flip(x.reshape(9, 32), 1).ravel() + 7
#include <cuda/barrier>
using barrier = cuda::barrier<cuda::thread_scope_block>;
#pragma nv_diag_suppress static_var_with_dynamic_init
extern "C" __global__ void barrier_roles(int n, const int* x, int* out) {
  __shared__ barrier full[2], empty[2];
  __shared__ int slot[2][32];
  if (threadIdx.x < 2) { init(&full[threadIdx.x], 64); init(&empty[threadIdx.x], 64); }
  __syncthreads();
  int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int i = 0; i < n; ++i) {
      if (i >= 2) empty[i % 2].arrive_and_wait();
      slot[i % 2][lane] = x[i * 32 + lane];
      (void)full[i % 2].arrive();
    }
  } else {
    for (int i = 0; i < n; ++i) {
      full[i % 2].arrive_and_wait();
      out[i * 32 + lane] = slot[i % 2][31 - lane] + 7;
      if (i + 2 < n) (void)empty[i % 2].arrive();
    }
  }
}
