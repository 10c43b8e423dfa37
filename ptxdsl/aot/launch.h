#ifndef PTXDSL_LAUNCH_1
#define PTXDSL_LAUNCH_1

/* What a launch asks for besides its arguments. Set what you do not need to zero. */
typedef struct ptxdsl_shape {
    unsigned int grid[3];      /* blocks */
    unsigned int block[3];     /* threads of a block; all zero: as many as the kernel is declared for */
    unsigned int cluster[3];   /* blocks of a cluster; all zero: as the kernel is declared, or none */
    unsigned int shared_bytes; /* dynamic shared memory of a block; 0: what the kernel says it uses */
    CUstream stream;
    int cooperative; /* all blocks run at a time */
    int pdl;         /* it may begin before the kernel in front of it has ended (programmatic dependent launch) */
} ptxdsl_shape;

/* What went wrong, in words. Every function returns the result; the pointer to this may be NULL. */
typedef struct ptxdsl_error {
    CUresult result; /* CUDA_SUCCESS, and an empty text, where nothing did */
    char text[512];
} ptxdsl_error;

/* A kernel in a context. Sizes are bytes of shared memory. */
typedef struct ptxdsl_kernel {
    CUfunction function;
    int max_threads, registers, static_shared;
} ptxdsl_kernel;

/* The limits of a context's device. */
typedef struct ptxdsl_device {
    int capability; /* 90 is 9.0 */
    int max_threads, max_block[3], max_grid[3], max_shared;
} ptxdsl_device;

#endif
