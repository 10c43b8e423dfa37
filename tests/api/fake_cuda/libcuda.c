/* The functions of the CUDA driver that ptxdsl calls, on a machine without a card: memory is the host's, kernels do
   nothing. cuda.h declares them, so a parameter that is not as the header has it does not compile. */

#include <cuda.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* What tests look at and set. */
EXPORT struct {
    int launches, loads, unloads, devices, capture_mode, shared, large_clusters, endless, events, retained;
    int fails;         /* the CUresult of the next launches, and of what waits for them or gives back */
    int frees;
    unsigned grid[3], block[3], shared_bytes, attribute_count;
    int attribute_ids[4];
    void *stream;
    unsigned long long parameters[4];
    int parameter_count; /* of 8 bytes, to copy */
    int fills, timed;
    unsigned long long filled; /* bytes */
    float milliseconds[8];     /* what lies between two events, over and over */
} fake = {.devices = 1};

/* A library's functions of DLPack's exchange API: every object is this tensor. */
EXPORT struct {
    void *data;
    int device_type, device_id, ndim;
    unsigned char code, bits;
    unsigned short lanes;
    long long *shape, *strides;
    unsigned long long byte_offset;
} fake_tensor;
EXPORT int fake_tensor_fails;
EXPORT void *fake_stream;
EXPORT int fake_from_object(void *object, void *out) {
    memcpy(out, &fake_tensor, sizeof fake_tensor);
    return fake_tensor_fails;
}
EXPORT int fake_current_stream(int device_type, int device, void **out) {
    *out = fake_stream;
    return device_type == 2 && device == 0 ? 0 : -1;
}

static __thread CUcontext current;
static struct { void *start; size_t size; } blocks[64];

static const char *names[] = {
    [0] = "CUDA_SUCCESS", [1] = "CUDA_ERROR_INVALID_VALUE", [2] = "CUDA_ERROR_OUT_OF_MEMORY",
    [201] = "CUDA_ERROR_INVALID_CONTEXT", [218] = "CUDA_ERROR_INVALID_PTX", [500] = "CUDA_ERROR_NOT_FOUND",
    [600] = "CUDA_ERROR_NOT_READY", [700] = "CUDA_ERROR_ILLEGAL_ADDRESS",
};

CUresult cuInit(unsigned int flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int *version) { *version = 13000; return CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult error, const char **text) {
    if (error >= sizeof names / sizeof *names || !names[error]) return CUDA_ERROR_INVALID_VALUE;
    *text = names[error];
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int *count) { *count = fake.devices; return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice *device, int ordinal) { *device = ordinal; return CUDA_SUCCESS; }
CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
    strncpy(name, "Fake", size);
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X: *value = 1024; break;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: *value = 1023; break;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: *value = 64; break;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *value = 2147483647; break;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y: *value = 65535; break;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *value = 65534; break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 232448; break;
        case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
        case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = 2048; break;
        case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 1000; break;
        default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    *context = (CUcontext)(size_t)(0xC0 + device);
    fake.retained++;
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) { fake.retained--; return CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext *context) { *context = current; return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext context) { current = context; return CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice *device) {
    if (!current) return CUDA_ERROR_INVALID_CONTEXT;
    *device = (int)((size_t)current - 0xC0);
    return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize(void) { return !current ? CUDA_ERROR_INVALID_CONTEXT : (CUresult)fake.fails; }

/* A library is its text; its only kernel is one byte further on. */
CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options, void **values,
                           unsigned int count, CUlibraryOption *more, void **more_values, unsigned int more_count) {
    if (fake.capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (strstr(code, "bad line")) {
        for (unsigned int i = 0; i + 1 < count; i++)
            if (options[i] == CU_JIT_ERROR_LOG_BUFFER && options[i + 1] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
                strncpy(values[i], "ptxas application ptx input, line 3; error   : Parsing error", (size_t)values[i + 1]);
        return CUDA_ERROR_INVALID_PTX;
    }
    fake.loads++;
    *library = (CUlibrary)strdup(code);
    return CUDA_SUCCESS;
}
CUresult cuLibraryUnload(CUlibrary library) { fake.unloads++; free(library); return CUDA_SUCCESS; }
CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
    if (!strstr((char *)library, name)) return CUDA_ERROR_NOT_FOUND;
    *kernel = (CUkernel)((char *)library + 1);
    return CUDA_SUCCESS;
}
CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
    *function = (CUfunction)kernel;
    return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device) {
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 896; break;
        case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 72; break;
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = 1024; break;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = 49152; break;
        default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}
CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device) {
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) fake.shared = value;
    if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) fake.large_clusters = value;
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra) {
    CUlaunchConfig config = {gx, gy, gz, bx, by, bz, shared, stream, NULL, 0};
    return cuLaunchKernelEx(&config, function, parameters, extra);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
    if (fake.fails) return fake.fails;
    if (!current) return CUDA_ERROR_INVALID_CONTEXT;
    fake.launches++;
    fake.grid[0] = config->gridDimX, fake.grid[1] = config->gridDimY, fake.grid[2] = config->gridDimZ;
    fake.block[0] = config->blockDimX, fake.block[1] = config->blockDimY, fake.block[2] = config->blockDimZ;
    fake.shared_bytes = config->sharedMemBytes;
    fake.stream = config->hStream;
    fake.attribute_count = config->numAttrs;
    for (unsigned i = 0; i < config->numAttrs && i < 4; i++) fake.attribute_ids[i] = config->attrs[i].id;
    for (int i = 0; i < fake.parameter_count; i++) memcpy(&fake.parameters[i], parameters[i], 8);
    return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, CUfunction function, int size, size_t shared) {
    *count = shared > 100000 ? 1 : 2048 / size;
    return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveClusters(int *count, CUfunction function, const CUlaunchConfig *config) {
    *count = 16;
    return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction function, const CUlaunchConfig *config) {
    *size = 8;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t size) {
    for (int i = 0; i < 64; i++)
        if (!blocks[i].start) {
            blocks[i].start = malloc(size), blocks[i].size = size;
            *address = (CUdeviceptr)blocks[i].start;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult cuMemFree(CUdeviceptr address) {
    if (fake.fails || !current) return fake.fails ? fake.fails : CUDA_ERROR_INVALID_CONTEXT;
    fake.frees++;
    for (int i = 0; i < 64; i++)
        if (blocks[i].start == (void *)address) {
            free(blocks[i].start);
            blocks[i].start = NULL;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}
CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address) {
    for (int i = 0; i < 64; i++)
        if (blocks[i].start && (char *)address >= (char *)blocks[i].start &&
            (char *)address < (char *)blocks[i].start + blocks[i].size) {
            *(int *)value = 0;
            return attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        }
    return CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size) { memcpy((void *)to, from, size); return CUDA_SUCCESS; }
CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size) { memcpy(to, (void *)from, size); return CUDA_SUCCESS; }

CUresult cuStreamSynchronize(CUstream stream) { return fake.fails; }
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
    *status = stream == (CUstream)0xCAFE ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    int old = fake.capture_mode;
    fake.capture_mode = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent *event, unsigned int flags) {
    *event = (CUevent)0xE0;
    fake.events++;
    return flags == CU_EVENT_DISABLE_TIMING || flags == CU_EVENT_DEFAULT ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuEventRecord(CUevent event, CUstream stream) { return CUDA_SUCCESS; }
CUresult cuEventQuery(CUevent event) { return fake.endless && fake.launches ? CUDA_ERROR_NOT_READY : fake.fails; }
CUresult cuEventDestroy(CUevent event) { fake.events -= !fake.fails; return fake.fails; }
#undef cuEventElapsedTime /* of newer headers, whose name for it older drivers lack */
CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
    *milliseconds = fake.milliseconds[fake.timed++ % 8];
    return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t size, CUstream stream) {
    memset((void *)address, value, size);
    fake.fills++;
    fake.filled = size;
    return CUDA_SUCCESS;
}
