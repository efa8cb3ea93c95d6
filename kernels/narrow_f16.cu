#include "work.cuh"

// The bits of a 16-bit float, because NVRTC has no header for the type.
using half = unsigned short;

// Rounds to f16: to nearest, ties to even; every NaN becomes the same one.
__device__ inline unsigned short f16_of(float value)
{
    if (isnan(value))
        return 0x7e00;
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

// Rounds results, [residues, values], to f16; one thread per residue.
KERNEL(256)
narrow_f16(const unsigned* header, const float* wide, half* narrow, unsigned values)
{
    wait_for_dependencies();
    each_thread(header, RESIDUES, [&](unsigned residue) {
        for (unsigned i = residue * values; i < (residue + 1) * values; ++i)
            narrow[i] = f16_of(wide[i]);
    });
}
