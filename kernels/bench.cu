// The kernels that `tapeloop bench`, the engine's benches and the reference programs run. All
// compile this text, so all run the same code; it includes nothing, since the run-time compiler has
// no headers. Outputs are compared bit for bit: with small integers in, every value on the way is
// exact in single precision.

// out = a in + 1, over every stride-th element of in; a is 2 and 0.5 in turn, and fused
// multiply-adds or not make no difference. Next to nothing to do: what it costs is the launch and
// the memory.
extern "C" __global__ void step(const float* in, float* out, unsigned n, unsigned stride, float a)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i * stride] * a + 1.0f;
}

// Two multiply-adds a step, each waiting for the one before: with a = 2, b = 1 and c = d = 0.5 a
// step adds 1. As they are arguments, the loop stays a loop. A thread takes up to four elements, so
// that there is always one whose turn it is; a grid has at least a thread for each four.
extern "C" __global__ void advance(const float* in, float* out, unsigned n, unsigned steps, float a,
                                   float b, float c, float d)
{
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
