#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Code for the device: machine code, or PTX that the driver compiles. */
typedef struct image {
    const void *data;
    const char *target;
} image;

/* How a kernel is declared. All zero: any number. */
typedef struct rules {
    const char *name;
    unsigned int threads[3], cluster[3], max_threads;
    int dynamic_shared; /* whether it has any */
    unsigned int dynamic_bytes; /* as many as it says that it uses; 0: the launch says it */
} rules;

static CUresult fail(ptxdsl_error *error, CUresult result, const char *format, ...)
{
    va_list values;
    if (error != NULL) {
        va_start(values, format);
        vsnprintf(error->text, sizeof error->text, format, values);
        va_end(values);
        error->result = result;
    }
    return result;
}

static CUresult succeed(ptxdsl_error *error)
{
    return fail(error, CUDA_SUCCESS, "%s", "");
}

/* The driver's own words behind ours. */
static CUresult refused(ptxdsl_error *error, CUresult result, const char *what)
{
    const char *name = NULL, *words = NULL;
    if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == NULL) name = "an unknown result";
    if (cuGetErrorString(result, &words) != CUDA_SUCCESS || words == NULL) words = "no description";
    return fail(error, result, "%s: %s (%s)", what, words, name);
}

static const char axes[] = "xyz";

static int given(const unsigned int dims[3])
{
    return dims[0] != 0 || dims[1] != 0 || dims[2] != 0;
}

static unsigned long long product(const unsigned int dims[3])
{
    return (unsigned long long)dims[0] * dims[1] * dims[2];
}

static CUresult describe(ptxdsl_device *device, ptxdsl_error *error)
{
    static const CUdevice_attribute attributes[] = {
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z,
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
    };
    int values[sizeof attributes / sizeof *attributes];
    CUdevice number;
    CUresult result = cuCtxGetDevice(&number);
    unsigned int i;
    for (i = 0; i < sizeof attributes / sizeof *attributes && result == CUDA_SUCCESS; i++)
        result = cuDeviceGetAttribute(&values[i], attributes[i], number);
    if (result != CUDA_SUCCESS) return refused(error, result, "the thread has no CUDA context that can be used");
    device->capability = 10 * values[0] + values[1];
    device->max_threads = values[2];
    memcpy(device->max_block, &values[3], sizeof device->max_block);
    memcpy(device->max_grid, &values[6], sizeof device->max_grid);
    device->max_shared = values[9];
    return CUDA_SUCCESS;
}

/* Whether another image may do where one was refused. */
static int of_the_image(CUresult result)
{
    return result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_INVALID_IMAGE ||
           result == CUDA_ERROR_INVALID_SOURCE || result == CUDA_ERROR_INVALID_PTX ||
           result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION || result == CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult load_images(CUmodule *module, const ptxdsl_device *device, const image *images, int count,
                            ptxdsl_error *error)
{
    char what[256];
    CUresult result = CUDA_ERROR_NO_BINARY_FOR_GPU;
    int i;
    for (i = 0; i < count; i++) {
        result = cuModuleLoadData(module, images[i].data);
        if (result == CUDA_SUCCESS) return result;
        if (!of_the_image(result)) break;
    }
    i = i < count ? i : count - 1;
    snprintf(what, sizeof what, "the code for %s does not load on this device of compute capability %d.%d",
             images[i].target, device->capability / 10, device->capability % 10);
    return refused(error, result, what);
}

static CUresult find_kernel(ptxdsl_kernel *kernel, CUmodule module, const ptxdsl_device *device, const rules *rule,
                            ptxdsl_error *error)
{
    char what[256];
    CUresult result = cuModuleGetFunction(&kernel->function, module, rule->name);
    if (result == CUDA_SUCCESS)
        result = cuFuncGetAttribute(&kernel->max_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel->function);
    if (result == CUDA_SUCCESS)
        result = cuFuncGetAttribute(&kernel->registers, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel->function);
    if (result == CUDA_SUCCESS)
        result = cuFuncGetAttribute(&kernel->static_shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel->function);
    /* Now, and not at a launch: the permission costs nothing, and launches then change nothing that they share. */
    if (result == CUDA_SUCCESS && device->max_shared > kernel->static_shared)
        result = cuFuncSetAttribute(kernel->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    device->max_shared - kernel->static_shared);
    if (result == CUDA_SUCCESS && device->capability >= 90)
        result = cuFuncSetAttribute(kernel->function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    if (result == CUDA_SUCCESS) return result;
    snprintf(what, sizeof what, "kernel '%s' cannot be made ready", rule->name);
    return refused(error, result, what);
}

static CUresult check_dims(const char *what, const rules *rule, const unsigned int dims[3], const int limits[3],
                           ptxdsl_error *error)
{
    int i;
    for (i = 0; i < 3; i++) {
        if (dims[i] == 0)
            return fail(error, CUDA_ERROR_INVALID_VALUE, "%s.%c of kernel '%s' is 0; it must be at least 1", what,
                        axes[i], rule->name);
        if (dims[i] > (unsigned int)limits[i])
            return fail(error, CUDA_ERROR_INVALID_VALUE, "%s.%c of kernel '%s' is %u; the device allows at most %d",
                        what, axes[i], rule->name, dims[i], limits[i]);
    }
    return CUDA_SUCCESS;
}

static CUresult check_block(const ptxdsl_device *device, const ptxdsl_kernel *kernel, const rules *rule,
                            const unsigned int block[3], ptxdsl_error *error)
{
    unsigned long long threads = product(block);
    CUresult result = check_dims("block", rule, block, device->max_block, error);
    if (result != CUDA_SUCCESS) return result;
    if (given(rule->threads) && memcmp(rule->threads, block, sizeof rule->threads) != 0)
        return fail(error, CUDA_ERROR_INVALID_VALUE,
                    "kernel '%s' runs with exactly (%u, %u, %u) threads per block; block is (%u, %u, %u)", rule->name,
                    rule->threads[0], rule->threads[1], rule->threads[2], block[0], block[1], block[2]);
    if (rule->max_threads != 0 && threads > rule->max_threads)
        return fail(error, CUDA_ERROR_INVALID_VALUE,
                    "kernel '%s' is declared for at most %u threads per block; block has %llu", rule->name,
                    rule->max_threads, threads);
    if (threads > (unsigned long long)device->max_threads)
        return fail(error, CUDA_ERROR_INVALID_VALUE,
                    "the block of kernel '%s' has %llu threads; the device allows at most %d", rule->name, threads,
                    device->max_threads);
    if (threads > (unsigned long long)kernel->max_threads)
        return fail(error, CUDA_ERROR_INVALID_VALUE,
                    "block has %llu threads; kernel '%s' needs %d registers per thread, so at most %d threads fit",
                    threads, rule->name, kernel->registers, kernel->max_threads);
    return CUDA_SUCCESS;
}

static CUresult check_cluster(const ptxdsl_device *device, const rules *rule, const unsigned int grid[3],
                              const unsigned int cluster[3], ptxdsl_error *error)
{
    int i;
    if (given(rule->cluster) && memcmp(rule->cluster, cluster, sizeof rule->cluster) != 0)
        return fail(error, CUDA_ERROR_INVALID_VALUE,
                    "kernel '%s' has clusters of (%u, %u, %u) blocks; cluster is (%u, %u, %u)", rule->name,
                    rule->cluster[0], rule->cluster[1], rule->cluster[2], cluster[0], cluster[1], cluster[2]);
    if (device->capability < 90)
        return fail(error, CUDA_ERROR_INVALID_VALUE,
                    "clusters (kernel '%s') need compute capability 9.0 or later; this is %d.%d", rule->name,
                    device->capability / 10, device->capability % 10);
    for (i = 0; i < 3; i++) {
        if (cluster[i] == 0)
            return fail(error, CUDA_ERROR_INVALID_VALUE, "cluster.%c of kernel '%s' is 0; it must be at least 1",
                        axes[i], rule->name);
        if (grid[i] % cluster[i] != 0)
            return fail(error, CUDA_ERROR_INVALID_VALUE,
                        "grid.%c of kernel '%s' is %u, not a multiple of the cluster's %u", axes[i], rule->name,
                        grid[i], cluster[i]);
    }
    if (product(cluster) > 16)
        return fail(error, CUDA_ERROR_INVALID_VALUE, "the cluster of kernel '%s' has %llu blocks; at most 16 are possible",
                    rule->name, product(cluster));
    return CUDA_SUCCESS;
}

static CUresult check_shared(const ptxdsl_device *device, const ptxdsl_kernel *kernel, const rules *rule,
                             unsigned int shared, ptxdsl_error *error)
{
    int room = device->max_shared - kernel->static_shared;
    if (shared < rule->dynamic_bytes)
        return fail(error, CUDA_ERROR_INVALID_VALUE,
                    "shared_bytes is %u; kernel '%s' uses %u bytes of dynamic shared memory (0 gives it as many)", shared,
                    rule->name, rule->dynamic_bytes);
    if (rule->dynamic_shared && shared == 0)
        return fail(error, CUDA_ERROR_INVALID_VALUE,
                    "kernel '%s' uses dynamic shared memory (external_memory), and shared_bytes is 0", rule->name);
    if (room < 0 || shared > (unsigned int)room)
        return fail(error, CUDA_ERROR_INVALID_VALUE,
                    "shared_bytes is %u; beside the %d bytes that kernel '%s' has of its own, %d are left", shared,
                    kernel->static_shared, rule->name, room < 0 ? 0 : room);
    return CUDA_SUCCESS;
}

static CUresult launch(const ptxdsl_device *device, const ptxdsl_kernel *kernel, const rules *rule,
                       const ptxdsl_shape *shape, void **arguments, ptxdsl_error *error)
{
    char what[256];
    CUlaunchConfig config;
    CUlaunchAttribute attributes[3];
    unsigned int count = 0;
    const unsigned int *block = given(shape->block) ? shape->block : rule->threads;
    const unsigned int *cluster = given(shape->cluster) ? shape->cluster : rule->cluster;
    unsigned int shared = shape->shared_bytes != 0 ? shape->shared_bytes : rule->dynamic_bytes;
    CUresult result;

    if (kernel->function == NULL)
        return fail(error, CUDA_ERROR_INVALID_HANDLE, "kernel '%s' is not loaded", rule->name);
    result = check_dims("grid", rule, shape->grid, device->max_grid, error);
    if (result == CUDA_SUCCESS) result = check_block(device, kernel, rule, block, error);
    if (result == CUDA_SUCCESS && given(cluster)) result = check_cluster(device, rule, shape->grid, cluster, error);
    if (result == CUDA_SUCCESS) result = check_shared(device, kernel, rule, shared, error);
    if (result == CUDA_SUCCESS && shape->pdl && device->capability < 90)
        result = fail(error, CUDA_ERROR_INVALID_VALUE, "pdl (kernel '%s') needs compute capability 9.0 or later",
                      rule->name);
    if (result != CUDA_SUCCESS) return result;

    memset(attributes, 0, sizeof attributes);
    /* A cluster that the kernel is declared with is in its code. */
    if (given(shape->cluster) && !given(rule->cluster)) {
        attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attributes[count].value.clusterDim.x = cluster[0];
        attributes[count].value.clusterDim.y = cluster[1];
        attributes[count++].value.clusterDim.z = cluster[2];
    }
    if (shape->cooperative) {
        attributes[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attributes[count++].value.cooperative = 1;
    }
    if (shape->pdl) {
        attributes[count].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attributes[count++].value.programmaticStreamSerializationAllowed = 1;
    }
    memset(&config, 0, sizeof config);
    config.gridDimX = shape->grid[0];
    config.gridDimY = shape->grid[1];
    config.gridDimZ = shape->grid[2];
    config.blockDimX = block[0];
    config.blockDimY = block[1];
    config.blockDimZ = block[2];
    config.sharedMemBytes = shared;
    config.hStream = shape->stream;
    config.attrs = attributes;
    config.numAttrs = count;
    result = cuLaunchKernelEx(&config, kernel->function, arguments, NULL);
    if (result == CUDA_SUCCESS) return succeed(error);
    snprintf(what, sizeof what, "the launch of kernel '%s' (grid (%u, %u, %u), block (%u, %u, %u)) failed", rule->name,
             shape->grid[0], shape->grid[1], shape->grid[2], block[0], block[1], block[2]);
    return refused(error, result, what);
}
