// cuda::barrier with a bulk copy and its transaction count
// arch: sm_90
// launch: grid 2, block 32
// args: x=randint:i32:512:seed=17; out=zeros:i32:512
// expect: out == ~x
#include <cuda/barrier>
#include <cuda/ptx>
using barrier = cuda::barrier<cuda::thread_scope_block>;
#pragma nv_diag_suppress static_var_with_dynamic_init
extern "C" __global__ void barrier_bulk(const int* x, int* out) {
  __shared__ alignas(16) int buffer[256];
  __shared__ barrier bar;
  if (threadIdx.x == 0) { init(&bar, blockDim.x); cuda::ptx::fence_proxy_async(cuda::ptx::space_shared); }
  __syncthreads();
  barrier::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::memcpy_async(buffer, x + blockIdx.x * 256, cuda::aligned_size_t<16>(sizeof buffer), bar);
  }
  token = bar.arrive();
  bar.wait(std::move(token));
  for (int i = threadIdx.x; i < 256; i += 32) buffer[i] = ~buffer[i];
  cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, out + blockIdx.x * 256, buffer, sizeof buffer);
    cuda::ptx::cp_async_bulk_commit_group();
    cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<0>());
  }
}
