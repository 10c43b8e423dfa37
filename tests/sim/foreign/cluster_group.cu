// a cluster: distributed shared memory through cooperative groups
// arch: sm_90
// launch: grid 4, block 32, cluster 2
// args: x=randint:i32:128:seed=19; out=zeros:i32:128
// expect: out == x.reshape(2, 2, 32)[:, ::-1].ravel()
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_group(const int* x, int* out) {
  __shared__ int mine[32];
  auto cluster = cg::this_cluster();
  int i = blockIdx.x * 32 + threadIdx.x;
  mine[threadIdx.x] = x[i];
  cluster.sync();
  out[i] = cluster.map_shared_rank(mine, cluster.block_rank() ^ 1)[threadIdx.x];
  cluster.sync();
}
