// wgmma: a warpgroup has a tile of 64 x 64; A K-major, B N-major, rows of 128 swizzled bytes, one wgmma-group in flight
// arch: sm_90a
// launch: grid 2x1, block 128
// args: a=randint:bf16:64x192:seed=33:low=-4:high=5; b=randint:bf16:192x128:seed=34:low=-4:high=5; d=zeros:f32:64x128; n=i32:128; k=i32:192
// expect: d == a @ b
#include <cstdint>

__device__ uint64_t descriptor(uint32_t address) {  // 128-byte swizzle; 1024 bytes from 8 rows to the next
    return uint64_t(address >> 4 & 0x3fff) | uint64_t(1) << 16 | uint64_t(1024 >> 4) << 32 | uint64_t(1) << 62;
}

extern "C" __global__ void __launch_bounds__(128) gemm_wgmma(const uint16_t* a, const uint16_t* b, float* d, int n, int k) {
    __shared__ __align__(1024) unsigned char as[2][64 * 128], bs[2][64 * 128];
    const int t = threadIdx.x, row = blockIdx.y * 64, column = blockIdx.x * 64;
    float s[32];
    for (int i = 0; i < 32; i++) s[i] = 0.0f;

    for (int at = 0, stage = 0; at < k; at += 64, stage ^= 1) {
        for (int i = t; i < 64 * 8; i += 128) {  // 16 bytes each
            const int line = i / 8, chunk = i % 8, place = line * 128 + (chunk ^ line % 8) * 16;
            *(uint4*)&as[stage][place] = *(const uint4*)&a[(row + line) * k + at + chunk * 8];
            *(uint4*)&bs[stage][place] = *(const uint4*)&b[(at + line) * n + column + chunk * 8];
        }
        asm volatile("fence.proxy.async;" ::: "memory");
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int step = 0; step < 4; step++) {
            const uint64_t da = descriptor(__cvta_generic_to_shared(as[stage]) + 32 * step);
            const uint64_t db = descriptor(__cvta_generic_to_shared(bs[stage]) + 2048 * step);
            asm volatile(
                "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, "
                "%23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, 1, 1, 1, 0, 1;"
                : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3]), "+f"(s[4]), "+f"(s[5]), "+f"(s[6]), "+f"(s[7]),
                  "+f"(s[8]), "+f"(s[9]), "+f"(s[10]), "+f"(s[11]), "+f"(s[12]), "+f"(s[13]), "+f"(s[14]), "+f"(s[15]),
                  "+f"(s[16]), "+f"(s[17]), "+f"(s[18]), "+f"(s[19]), "+f"(s[20]), "+f"(s[21]), "+f"(s[22]), "+f"(s[23]),
                  "+f"(s[24]), "+f"(s[25]), "+f"(s[26]), "+f"(s[27]), "+f"(s[28]), "+f"(s[29]), "+f"(s[30]), "+f"(s[31])
                : "l"(da), "l"(db) : "memory");
        }
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        __syncthreads();  // the other stage has been read by all
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < 32; i++)
        d[(row + t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8) * n + column + i / 4 * 8 + t % 4 * 2 + i % 2] = s[i];
}
