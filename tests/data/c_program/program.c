/* Launches the kernels of shapes.pdsl through the files that `ptxdsl build --format c` wrote:

       program SOURCE RESULT

   SOURCE has 512 floats. RESULT gets line's 512 (2 x + 0.5 of blocks of 128, reversed), the same of -x, and tile's 512.
   What launches refuse is printed. (C11: before it, cuda.h does not align a CUtensorMap as the driver wants it.) */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shapes.h"

#define N 512

static void must(CUresult result, const char *text)
{
    if (result == CUDA_SUCCESS) return;
    fprintf(stderr, "%s\n", text);
    exit(1);
}

static void refused(const char *what, CUresult result, const ptxdsl_error *error)
{
    printf("%s: %d %s\n", what, (int)result, result == error->result ? error->text : "another result");
}

static CUtensorMap map_of(CUdeviceptr memory)
{
    CUtensorMap map;
    cuuint64_t sizes[2] = {32, 16}, strides[1] = {128};
    cuuint32_t box[2] = {32, 8}, steps[2] = {1, 1};
    must(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (void *)memory, sizes, strides, box, steps,
                                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
         "cuTensorMapEncodeTiled");
    return map;
}

int main(int argc, char **argv)
{
    static shapes_module module;
    static float values[3 * N];
    CUcontext context;
    CUdevice device;
    CUdeviceptr src, res;
    CUtensorMap map;
    ptxdsl_error error;
    ptxdsl_shape good, bad;
    shapes_Line p = {2.0f, 0x3f00}; /* 0.5 */
    FILE *file;

    if (argc != 3 || (file = fopen(argv[1], "rb")) == NULL || fread(values, sizeof *values, N, file) != N) return 2;
    fclose(file);
    memset(&good, 0, sizeof good);
    good.grid[0] = N / 128;
    good.block[0] = 128;
    good.grid[1] = good.grid[2] = good.block[1] = good.block[2] = 1;
    good.shared_bytes = 64 << 10;
    bad = good;

    refused("no context", shapes_load(&module, &error), &error);
    must(cuInit(0), "cuInit");
    must(cuDeviceGet(&device, 0), "cuDeviceGet");
    must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    must(cuMemAlloc(&src, sizeof(float) * N), "cuMemAlloc");
    must(cuMemAlloc(&res, sizeof values), "cuMemAlloc");
    must(cuMemcpyHtoD(src, values, sizeof(float) * N), "cuMemcpyHtoD");
    refused("not loaded", shapes_line_launch(&module, &good, src, res, N, p, false, &error), &error);
    must(shapes_load(&module, &error), error.text);

    must(shapes_line_launch(&module, &good, src, res, N, p, false, &error), error.text);
    good.cluster[0] = 2;
    good.cluster[1] = good.cluster[2] = 1;
    good.pdl = 1;
    must(shapes_line_launch(&module, &good, src, res + sizeof(float) * N, N, p, true, NULL), "line with a cluster");
    memset(good.block, 0, sizeof good.block); /* as the kernel is declared */
    memset(good.cluster, 0, sizeof good.cluster);
    good.grid[0] = 2;
    good.pdl = good.shared_bytes = 0;
    good.cooperative = 1;
    map = map_of(src);
    must(shapes_tile_launch(&module, &good, &map, res + 2 * sizeof(float) * N, &error), error.text);

#define REFUSED(field, value)                                                                        \
    do {                                                                                             \
        ptxdsl_shape shape = bad;                                                                    \
        shape.field = value;                                                                         \
        refused(#field, shapes_line_launch(&module, &shape, src, res, N, p, false, &error), &error); \
    } while (0)
    REFUSED(grid[0], 0);
    REFUSED(grid[1], 70000);
    REFUSED(block[0], 257);
    REFUSED(block[2], 65);
    REFUSED(cluster[0], 3);
    REFUSED(cluster[1], 1);
    REFUSED(shared_bytes, 0);
    REFUSED(shared_bytes, 1 << 20);
    refused("alignment", shapes_line_launch(&module, &bad, src + 2, res, N, p, false, &error), &error);
    refused("threads", shapes_tile_launch(&module, &bad, &map, res, &error), &error);
    bad.block[0] = 32;
    bad.grid[0] = 3;
    refused("cluster", shapes_tile_launch(&module, &bad, &map, res, &error), &error);
    bad.grid[0] = 2;
    bad.shared_bytes = 1000;
    refused("bytes", shapes_tile_launch(&module, &bad, &map, res, &error), &error);
    bad.shared_bytes = 1024;
    refused("map", shapes_tile_launch(&module, &bad, NULL, res, &error), &error);

    must(cuCtxSynchronize(), "the kernels failed");
    must(cuMemcpyDtoH(values, res, sizeof values), "cuMemcpyDtoH");
    must(shapes_unload(&module, &error), error.text);
    must(shapes_unload(&module, &error), error.text);
    if ((file = fopen(argv[2], "wb")) == NULL || fwrite(values, sizeof values, 1, file) != 1) return 2;
    fclose(file);
    puts("done");
    return 0;
}
