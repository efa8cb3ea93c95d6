#include "work.cuh"

// The bits of a number of 16 bits; NVRTC has no header for its type.
using half = unsigned short;

// The nearest of f16, halves to even, infinity beyond the largest; one NaN.
__device__ inline unsigned short f16_of(float value)
{
    if (isnan(value))
        return 0x7e00;
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

// Reals of residues as f16: `values` a residue, side by side.
KERNEL(256)
narrow_f16(const unsigned* header, const float* wide, half* narrow, unsigned values)
{
    each_thread(header, RESIDUES, [&](unsigned own) {
        for (unsigned at = own * values; at < (own + 1) * values; ++at)
            narrow[at] = f16_of(wide[at]);
    });
}
