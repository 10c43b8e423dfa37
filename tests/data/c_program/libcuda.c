/* The functions of the CUDA driver that program.c needs, without a card: what they are asked to do is printed, kernels do
   nothing, memory is the host's. The environment says what fails: STUB_REFUSES=elf or all. The sizes of a kernel's
   parameters are in a variable of its name. */

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CUcontext current;

CUresult cuInit(unsigned int flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
CUresult cuGetErrorName(CUresult error, const char **text)
{
    *text = error == CUDA_ERROR_NO_BINARY_FOR_GPU ? "CUDA_ERROR_NO_BINARY_FOR_GPU" : "CUDA_ERROR_OTHER";
    return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = error == CUDA_ERROR_NO_BINARY_FOR_GPU ? "no kernel image" : "other words";
    return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice *device, int ordinal) { *device = ordinal; return CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    *context = (CUcontext)(size_t)(device + 1);
    return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) { current = context; return CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice *device) { *device = 0; return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT; }
CUresult cuCtxSynchronize(void) { return CUDA_SUCCESS; }

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    (void)device;
    switch ((int)attribute) {
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
        case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: *value = 64; break;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *value = 2147483647; break;
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
        case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *value = 65535; break;
        case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 232448; break;
        default: *value = 1024;
    }
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    const char *refuses = getenv("STUB_REFUSES");
    int elf = memcmp(image, "\177ELF", 4) == 0;
    printf("load %s%s\n", elf ? "elf" : strstr((const char *)image, ".entry line(") ? "ptx" : "nonsense",
           (size_t)image % 8 ? " unaligned" : "");
    if (refuses && (elf || !strcmp(refuses, "all"))) return CUDA_ERROR_NO_BINARY_FOR_GPU;
    *module = (CUmodule)image;
    return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) { printf("unload %s\n", module ? "it" : "nothing"); return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    *function = (CUfunction)(size_t)name;
    return module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    (void)function;
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 896 : attribute == CU_FUNC_ATTRIBUTE_NUM_REGS ? 72 : 1024;
    return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    printf("set %s %d %d\n", (const char *)function, (int)attribute, value);
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    const char *sizes = getenv((const char *)function);
    printf("launch %s grid %u %u %u block %u %u %u shared %u", (const char *)function, config->gridDimX, config->gridDimY,
           config->gridDimZ, config->blockDimX, config->blockDimY, config->blockDimZ, config->sharedMemBytes);
    for (unsigned int i = 0; i < config->numAttrs; i++)
        printf(" attribute %d %u", (int)config->attrs[i].id, config->attrs[i].value.clusterDim.x);
    for (char *end; sizes && *sizes; sizes = end, parameters++) {
        long size = strtol(sizes, &end, 10);
        printf(" ");
        for (long i = 0; i < size; i++) printf("%02x", ((unsigned char *)*parameters)[i]);
    }
    printf("\n");
    return extra ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t size) { *address = (CUdeviceptr)calloc(1, size); return CUDA_SUCCESS; }
CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size)
{
    memcpy((void *)to, from, size);
    return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size) { memcpy(to, (void *)from, size); return CUDA_SUCCESS; }
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box,
                                const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    (void)type, (void)rank, (void)address, (void)sizes, (void)strides, (void)box, (void)steps, (void)interleave;
    (void)swizzle, (void)promotion, (void)fill;
    memset(map, 0xAB, sizeof *map);
    return CUDA_SUCCESS;
}
