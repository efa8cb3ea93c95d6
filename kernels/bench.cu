// The kernels that `tapeloop bench`, the engine's benches and the reference programs
// run. All compile this text, so all run the same code; it includes nothing, since the
// run-time compiler has no headers. Outputs are compared bit for bit: with small
// integers in, every value on the way is exact in single precision.

// out = a in + 1, over every stride-th element of in; a is 2 and 0.5 in turn, and
// fused multiply-adds or not make no difference. Next to nothing to do: what it costs is
// the launch and the memory.
extern "C" __global__ void step(const float* in, float* out, unsigned n, unsigned stride, float a)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i * stride] * a + 1.0f;
}

// Two multiply-adds a step, each waiting for the one before: with a = 2, b = 1 and
// c = d = 0.5 a step adds 1. As they are arguments, the loop stays a loop. An element a
// thread: from some 70,000 elements on, a card of 132 multiprocessors has the four
// warps for each scheduler that hide a multiply-add's latency.
extern "C" __global__ void advance(const float* in, float* out, unsigned n, unsigned steps, float a,
                                   float b, float c, float d)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i];
#pragma unroll 8
    for (unsigned k = 0; k < steps; ++k) {
        x = __fmaf_rn(x, a, b);
        x = __fmaf_rn(x, c, d);
    }
    out[i] = x;
}
