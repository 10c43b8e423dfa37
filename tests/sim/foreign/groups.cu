// cooperative groups: tiles, coalesced groups, reductions and scans
// arch: sm_80
// launch: grid 2, block 64
// args: x=randint:i32:128:seed=18:low=0:high=1000; out=zeros:i32:384
// expect: out == np.concatenate([np.repeat(x.reshape(-1, 8).sum(1), 8), np.cumsum(x.reshape(-1, 16), 1).ravel(), np.where(x % 3 == 0, np.repeat((x.reshape(-1, 32) % 3 == 0).sum(1), 32), -1)])
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" __global__ void groups(const int* x, int* out) {
  auto block = cg::this_thread_block();
  int i = blockIdx.x * 64 + block.thread_rank(), value = x[i];
  auto eight = cg::tiled_partition<8>(block);
  out[i] = cg::reduce(eight, value, cg::plus<int>());
  auto sixteen = cg::tiled_partition<16>(block);
  out[128 + i] = cg::inclusive_scan(sixteen, value);
  out[256 + i] = -1;
  if (value % 3 == 0) {
    auto some = cg::coalesced_threads();
    out[256 + i] = some.size();
  }
}
