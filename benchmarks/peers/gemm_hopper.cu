// The kernel of samples/08_gemm_hopper.pdsl written by hand in CUDA C++, as it is launched for large bfloat16 matrices: tiles
// of 128 by 256, clusters of two that share B, three stages of loads, four boxes of C for each warpgroup.
#include <cuda.h>
#include <stdint.h>

constexpr int BM = 128, BN = 256, BK = 64, STAGES = 3, C_STAGES = 4, CLUSTER = 2, ORDER = 8;
constexpr int A_BYTES = BM * BK * 2, B_BYTES = BN * BK * 2, C_BYTES = 64 * 64 * 2;

struct Ring {  // a role's place in a ring of barriers: full ones first, then empty ones
  uint32_t bars, count, index, phase;
  __device__ uint32_t full() const { return bars + 8 * index; }
  __device__ uint32_t empty() const { return bars + 8 * (count + index); }
  __device__ void step() {
    if (++index == count) index = 0, phase ^= 1;
  }
};

__device__ void init(uint32_t bar, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(arrivals) : "memory");
}
__device__ void wait(uint32_t bar, uint32_t phase) {
  asm volatile(
      "{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n@p bra done;\nbra again;\ndone:\n}" ::"r"(bar),
      "r"(phase)
      : "memory");
}
__device__ void arrive(uint32_t bar) { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(bar) : "memory"); }
__device__ void arrive_in(uint32_t bar, uint32_t rank) {  // of the cluster; it orders nothing outside of the block
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.release.cta.shared::cluster.b64 _, [there];\n}" ::"r"(bar),
      "r"(rank)
      : "memory");
}
__device__ void expect(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ void load(uint32_t to, const CUtensorMap& map, uint32_t bar, int x, int y, int z) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to),
      "l"(&map), "r"(bar), "r"(x), "r"(y), "r"(z)
      : "memory");
}
__device__ void load_for_all(uint32_t to, const CUtensorMap& map, uint32_t bar, int x, int y, int z, uint16_t mask) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
      "l"(&map), "r"(bar), "r"(x), "r"(y), "r"(z), "h"(mask)
      : "memory");
}
__device__ void store(const CUtensorMap& map, uint32_t from, int x, int y, int z) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map), "r"(from), "r"(x),
               "r"(y), "r"(z)
               : "memory");
}
__device__ void prefetch(const CUtensorMap& map) { asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory"); }

__device__ uint64_t descriptor(uint32_t address) {  // of K-major rows of 128 bytes, swizzled: eight rows are 1024 bytes
  return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)64 << 32 | (uint64_t)1 << 62;
}

#define FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)
__device__ void product(float (&d)[128], uint64_t a, uint64_t b) {
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, "
      "%15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, "
      "%39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, "
      "%63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, "
      "%87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, "
      "%109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, 1, 1, 1, 0, 0;"
      : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48), SIXTEEN(64), SIXTEEN(80), SIXTEEN(96), SIXTEEN(112)
      : "l"(a), "l"(b));
}
__device__ uint32_t pair(float low, float high) {
  uint32_t both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

struct Order {  // ORDER rows of tiles at a time, in these column after column
  uint32_t rows, cols;
  __device__ void tile(uint32_t index, int& row, int& col, int& batch) const {
    batch = index >= rows * cols ? index / (rows * cols) : 0;
    index -= batch * rows * cols;
    uint32_t whole = cols * ORDER, above = 0;
    if (index >= whole) above = index / whole * ORDER, index %= whole;
    uint32_t height = rows - above;
    if (height >= ORDER) height = ORDER;
    row = above + index % height, col = index / height;
  }
};

extern "C" __global__ void __cluster_dims__(CLUSTER) __launch_bounds__(384, 1)
    gemm(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, const __grid_constant__ CUtensorMap c,
         int m, int n, int k, int batches) {
  extern __shared__ __align__(1024) uint8_t memory[];
  __shared__ uint64_t load_bars[2 * STAGES], store_bars[2][2 * C_STAGES];
  uint32_t base = __cvta_generic_to_shared(memory), loads = __cvta_generic_to_shared(load_bars);
  uint32_t b_base = base + STAGES * A_BYTES, c_base = b_base + STAGES * B_BYTES;
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    prefetch(a);
    prefetch(b);
  } else if (threadIdx.x == 32) {
    for (int i = 0; i < STAGES; i++) init(loads + 8 * i, 1), init(loads + 8 * (STAGES + i), 8 * CLUSTER);
    for (int g = 0; g < 2; g++)
      for (int i = 0; i < C_STAGES; i++) {
        init(__cvta_generic_to_shared(&store_bars[g][i]), 128);
        init(__cvta_generic_to_shared(&store_bars[g][C_STAGES + i]), 1);
      }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  Order order = {(uint32_t)(m + CLUSTER * BM - 1) / (CLUSTER * BM), (uint32_t)(n + BN - 1) / BN};
  uint32_t tile = blockIdx.x / CLUSTER, tiles = order.rows * order.cols * batches, stride = gridDim.x / CLUSTER;
  int steps = max((k + BK - 1) / BK, 1), row, col, batch;
  order.tile(tile, row, col, batch);
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");

  int warp = __shfl_sync(~0u, threadIdx.x / 32, 0);
  if (warp < 4) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {
      Ring p = {loads, STAGES, 0, 1};
      int k0 = 0, k_step = BK;
      while (tile < tiles) {
        int m0 = (row * CLUSTER + rank) * BM, n0 = col * BN + rank * (BN / CLUSTER);
#pragma unroll 1
        for (int i = 0; i < steps; i++, k0 += k_step) {
          wait(p.empty(), p.phase);
          expect(p.full(), A_BYTES + B_BYTES);
          load(base + p.index * A_BYTES, a, p.full(), k0, m0, batch);
          load_for_all(b_base + p.index * B_BYTES + rank * (B_BYTES / CLUSTER), b, p.full(), k0, n0, batch, (1 << CLUSTER) - 1);
          p.step();
        }
        k0 -= k_step, k_step = -k_step;
        tile += stride;
        order.tile(tile, row, col, batch);
      }
      asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
      for (int i = 0; i < STAGES; i++, p.step()) wait(p.empty(), p.phase);
    } else if (warp > 0 && warp <= 2 && threadIdx.x % 32 == 0) {
      prefetch(c);
      int group = warp - 1;
      Ring s = {(uint32_t)__cvta_generic_to_shared(store_bars[group]), C_STAGES, 0, 0};
      while (tile < tiles) {
        int m0 = (row * CLUSTER + rank) * BM + group * 64;
        for (int j = 0; j < BN / 64; j++) {
          wait(s.full(), s.phase);
          store(c, c_base + (group * C_STAGES + s.index) * C_BYTES, col * BN + j * 64, m0, batch);
          asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;" ::: "memory");
          arrive(s.empty());
          s.step();
        }
        tile += stride;
        order.tile(tile, row, col, batch);
      }
      asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    int group = warp / 4 - 1, lane = threadIdx.x % 32;
    Ring p = {loads, STAGES, 0, 0}, last = p;
    Ring s = {(uint32_t)__cvta_generic_to_shared(store_bars[group]), C_STAGES, 0, 1};
    while (tile < tiles) {
      float d[128];
#pragma unroll
      for (int i = 0; i < 128; i++) d[i] = 0;
#pragma unroll 1
      for (int i = 0; i < steps; i++) {
        wait(p.full(), p.phase);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        uint64_t left = descriptor(base + p.index * A_BYTES + group * 64 * 128), right = descriptor(b_base + p.index * B_BYTES);
#pragma unroll
        for (int j = 0; j < 4; j++) product(d, left + 2 * j, right + 2 * j);
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (i > 0 && lane < CLUSTER) arrive_in(last.empty(), lane);
        last = p;
        p.step();
      }
      asm volatile("wgmma.wait_group.sync.aligned 0;"
                   : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48), SIXTEEN(64), SIXTEEN(80), SIXTEEN(96), SIXTEEN(112)::"memory");
      if (lane < CLUSTER) arrive_in(last.empty(), lane);
#pragma unroll
      for (int j = 0; j < BN / 64; j++) {
        wait(s.empty(), s.phase);
        uint32_t box = c_base + (group * C_STAGES + s.index) * C_BYTES;
#pragma unroll
        for (int i = 0; i < 4; i++) {  // 16 columns: a warp's 16 rows of them
          int at = j * 32 + i * 8;
          uint32_t byte = (warp % 4 * 16 + lane % 16) * 128 + (i * 16 + lane / 16 * 8) * 2;
          asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(box + (byte ^ (byte >> 7 & 7) << 4)),
                       "r"(pair(d[at], d[at + 1])), "r"(pair(d[at + 2], d[at + 3])), "r"(pair(d[at + 4], d[at + 5])),
                       "r"(pair(d[at + 6], d[at + 7]))
                       : "memory");
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        arrive(s.full());
        s.step();
      }
      tile += stride;
      order.tile(tile, row, col, batch);
    }
  }
}
