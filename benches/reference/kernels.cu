// The kernel that the reference programs and the engine's benches run. Both
// compile this text, so both run the same code; it includes nothing, since the
// run-time compiler has no headers.

// out = a in + 1, over every stride-th element of in. With small integers in, and
// 2 and 0.5 in turn for a, every value on the way is exact in single precision,
// with fused multiply-adds and without: outputs are compared bit for bit.
extern "C" __global__ void step(const float* in, float* out, unsigned n, unsigned stride, float a)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i * stride] * a + 1.0f;
}
