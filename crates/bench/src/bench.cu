// The kernels of `tapeloop bench`, of the engine's benches and of the reference programs, which all
// compile this text. It includes nothing, because the run-time compiler has no headers. Outputs are
// compared bit for bit: for small integers as input, every intermediate value is exact in single
// precision.

// Waits for the work before the kernel, which may start before that has ended (programmatic dependent
// launch).
__device__ inline void wait_for_dependencies()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// out = a in + 1, over every stride-th element of in; a alternates between 2 and 0.5, for which
// fused multiply-adds change nothing. There is almost no computation: the cost is the launch and
// the memory traffic.
extern "C" __global__ void step(const float* in, float* out, unsigned n, unsigned stride, float a)
{
    wait_for_dependencies();
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i * stride] * a + 1.0f;
}

// Each step is two dependent multiply-adds, which with a = 2, b = 1 and c = d = 0.5 add 1. As these
// are arguments, the compiler cannot remove the loop. A thread interleaves up to four elements to
// hide latency, so the grid needs at least one thread per four elements.
extern "C" __global__ void advance(const float* in, float* out, unsigned n, unsigned steps, float a,
                                   float b, float c, float d)
{
    wait_for_dependencies();
    const unsigned first = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned threads = gridDim.x * blockDim.x;
    float x[4];
    for (unsigned j = 0; j < 4; ++j) {
        const unsigned i = first + j * threads;
        x[j] = i < n ? in[i] : 0.0f;
    }
#pragma unroll 4
    for (unsigned k = 0; k < steps; ++k) {
        for (unsigned j = 0; j < 4; ++j) x[j] = __fmaf_rn(x[j], a, b);
        for (unsigned j = 0; j < 4; ++j) x[j] = __fmaf_rn(x[j], c, d);
    }
    for (unsigned j = 0; j < 4; ++j) {
        const unsigned i = first + j * threads;
        if (i < n) out[i] = x[j];
    }
}
