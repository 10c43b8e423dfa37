// wmma fragments: f16 in, f32 out
// arch: sm_80
// launch: grid 2x2, block 32
// args: k=i32:64; n=i32:32; a=randint:f16:32x64:seed=11:low=-4:high=5; b=randint:f16:64x32:seed=12:low=-4:high=5; c=zeros:f32:32x32
// expect: c == a.astype(np.float32) @ b.astype(np.float32)
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void wmma_product(int k, int n, const half* a, const half* b, float* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  for (int t = 0; t < k; t += 16) {
    wmma::load_matrix_sync(fa, a + blockIdx.y * 16 * k + t, k);
    wmma::load_matrix_sync(fb, b + t * n + blockIdx.x * 16, n);
    wmma::mma_sync(fc, fa, fb, fc);
  }
  wmma::store_matrix_sync(c + blockIdx.y * 16 * n + blockIdx.x * 16, fc, n, wmma::mem_row_major);
}
