// a tiled product with shared memory
// arch: sm_80
// launch: grid 4x2, block 16x16
// args: k=i32:48; n=i32:64; a=randint:f32:32x48:seed=9:low=-5:high=6; b=randint:f32:48x64:seed=10:low=-5:high=6; c=zeros:f32:32x64
// expect: c == a @ b
extern "C" __global__ void matmul_tiled(int k, int n, const float* a, const float* b, float* c) {
  __shared__ float ta[16][16], tb[16][16];
  int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < k; t += 16) {
    ta[threadIdx.y][threadIdx.x] = a[row * k + t + threadIdx.x];
    tb[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + col];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; ++i) sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
    __syncthreads();
  }
  c[row * n + col] = sum;
}
