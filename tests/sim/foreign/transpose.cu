// a tiled transpose
// arch: sm_80
// launch: grid 4x3, block 32x8
// args: width=i32:128; height=i32:96; x=randn:f32:96x128:seed=8; out=zeros:f32:128x96
// expect: out == x.T
extern "C" __global__ void transpose(int width, int height, const float* x, float* out) {
  __shared__ float tile[32][33];
  int cx = blockIdx.x * 32 + threadIdx.x, cy = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = x[(cy + j) * width + cx];
  __syncthreads();
  cx = blockIdx.y * 32 + threadIdx.x; cy = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(cy + j) * height + cx] = tile[threadIdx.x][threadIdx.y + j];
}
