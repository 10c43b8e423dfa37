// cp.async in two stages, ldmatrix (B transposed) and mma.sync: four warps have a tile of 64 x 64
// arch: sm_80
// launch: grid 2x1, block 128
// args: a=randint:bf16:64x96:seed=31:low=-4:high=5; b=randint:bf16:96x128:seed=32:low=-4:high=5; d=zeros:f32:64x128; n=i32:128; k=i32:96
// expect: d == a @ b
#include <cstdint>

constexpr int BM = 64, BN = 64, BK = 32, PAD = 8;

extern "C" __global__ void __launch_bounds__(128) gemm_mma(const uint16_t* a, const uint16_t* b, float* d, int n, int k) {
    __shared__ __align__(16) uint16_t as[2][BM][BK + PAD];
    __shared__ __align__(16) uint16_t bs[2][BK][BN + PAD];
    const int t = threadIdx.x, warp = t / 32, lane = t % 32;
    const int row = blockIdx.y * BM, column = blockIdx.x * BN;
    const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
    float sum[2][4][4] = {};

    auto copy = [&](int stage, int at) {
        for (int i = t; i < BM * BK / 8; i += 128) {
            const uint32_t to = __cvta_generic_to_shared(&as[stage][i / (BK / 8)][i % (BK / 8) * 8]);
            const uint16_t* from = a + (row + i / (BK / 8)) * k + at + i % (BK / 8) * 8;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
        }
        for (int i = t; i < BK * BN / 8; i += 128) {
            const uint32_t to = __cvta_generic_to_shared(&bs[stage][i / (BN / 8)][i % (BN / 8) * 8]);
            const uint16_t* from = b + (at + i / (BN / 8)) * n + column + i % (BN / 8) * 8;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    copy(0, 0);
    for (int at = 0, stage = 0; at < k; at += BK, stage ^= 1) {
        if (at + BK < k) {
            copy(stage ^ 1, at + BK);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        }
        __syncthreads();
        for (int step = 0; step < BK; step += 16) {
            uint32_t af[2][4], bf[4][2];
            for (int i = 0; i < 2; i++) {
                const uint32_t p = __cvta_generic_to_shared(&as[stage][warp_row + 16 * i + lane % 16][step + lane / 16 * 8]);
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(af[i][0]), "=r"(af[i][1]), "=r"(af[i][2]), "=r"(af[i][3]) : "r"(p) : "memory");
            }
            for (int j = 0; j < 4; j += 2) {
                const uint32_t p = __cvta_generic_to_shared(&bs[stage][step + lane % 16][warp_column + 8 * j + lane / 16 * 8]);
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(bf[j][0]), "=r"(bf[j][1]), "=r"(bf[j + 1][0]), "=r"(bf[j + 1][1]) : "r"(p) : "memory");
            }
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++)
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                                 : "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
                                 : "r"(af[i][0]), "r"(af[i][1]), "r"(af[i][2]), "r"(af[i][3]), "r"(bf[j][0]), "r"(bf[j][1]));
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++)
            for (int c = 0; c < 4; c++)
                d[(row + warp_row + 16 * i + lane / 4 + c / 2 * 8) * n + column + warp_column + 8 * j + lane % 4 * 2 + c % 2] = sum[i][j][c];
}
