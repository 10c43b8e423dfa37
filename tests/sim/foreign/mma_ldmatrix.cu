// ldmatrix and mma.sync by inline PTX, bf16
// arch: sm_80
// launch: grid 1, block 32
// args: a=randint:bf16:16x32:seed=13:low=-4:high=5; b=randint:bf16:8x32:seed=14:low=-4:high=5; c=zeros:f32:16x8
// expect: c == a @ b.T
#include <cstdint>
extern "C" __global__ void mma_ldmatrix(const uint4* a, const uint4* b, float* c) {
  __shared__ uint4 sa[16 * 4], sb[8 * 4];
  int t = threadIdx.x;
  sa[t] = a[t]; sa[t + 32] = a[t + 32]; sb[t] = b[t];
  __syncwarp();
  float d[4] = {};
  for (int k = 0; k < 2; ++k) {
    unsigned pa = __cvta_generic_to_shared(&sa[(t % 16) * 4 + k * 2 + t / 16]);
    unsigned pb = __cvta_generic_to_shared(&sb[(t % 8) * 4 + k * 2 + (t / 8) % 2]);
    unsigned x0, x1, x2, x3, y0, y1;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(x0), "=r"(x1), "=r"(x2), "=r"(x3) : "r"(pa));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(y0), "=r"(y1) : "r"(pb));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(y0), "r"(y1));
  }
  int row = t / 4, col = (t % 4) * 2;
  c[row * 8 + col] = d[0]; c[row * 8 + col + 1] = d[1]; c[(row + 8) * 8 + col] = d[2]; c[(row + 8) * 8 + col + 1] = d[3];
}
