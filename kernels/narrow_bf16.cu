#include "work.cuh"

// The bits of a 16-bit float, because NVRTC has no header for the type.
using nv_bfloat16 = unsigned short;

// Rounds to bf16, the upper half of a float: to nearest, ties to even; every NaN becomes the same
// one. The oldest supported GPUs have no instruction for this.
__device__ inline unsigned short bf16_of(float value)
{
    if (isnan(value))
        return 0x7fc0;
    const unsigned bits = __float_as_uint(value);
    return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Rounds results, [residues, values], to bf16; one thread per residue.
KERNEL(256)
narrow_bf16(const unsigned* header, const float* wide, nv_bfloat16* narrow, unsigned values)
{
    wait_for_dependencies();
    each_thread(header, RESIDUES, [&](unsigned residue) {
        for (unsigned i = residue * values; i < (residue + 1) * values; ++i)
            narrow[i] = bf16_of(wide[i]);
    });
}
