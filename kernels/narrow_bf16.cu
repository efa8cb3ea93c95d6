#include "work.cuh"

// The bits of a number of 16 bits; NVRTC has no header for its type.
using nv_bfloat16 = unsigned short;

// The nearest of bf16, the upper half of a float, halves to even; one NaN. The oldest cards that
// code is made for have no instruction for it.
__device__ inline unsigned short bf16_of(float value)
{
    if (isnan(value))
        return 0x7fc0;
    const unsigned bits = __float_as_uint(value);
    return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Reals of residues as bf16: `values` a residue, side by side.
KERNEL(256)
narrow_bf16(const unsigned* header, const float* wide, nv_bfloat16* narrow, unsigned values)
{
    each_thread(header, RESIDUES, [&](unsigned own) {
        for (unsigned at = own * values; at < (own + 1) * values; ++at)
            narrow[at] = bf16_of(wide[at]);
    });
}
