#include "shrake_rupley.cuh"

// Areas of residues in the model; one warp a residue. The test points stand in
// the header from `first` on, their x before their y and z.
extern "C" __global__ void __launch_bounds__(SASA_THREADS)
sasa(const unsigned* header, const Structure* structures, const Residue* residues,
     const Atom* atoms, CELL_PARAMS, float* areas, unsigned first, unsigned points, unsigned probe)
{
    const unsigned own = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (own >= header[RESIDUES])
        return;
    const float* x = (const float*)header + first;
    const Sphere sphere{x, x + points, x + 2 * points, points, int(probe)};
    const Residue residue = residues[own];
    const Areas sums =
        residue_areas<false>(structures, residue, atoms, CELLS_OF_PARAMS, sphere);
    if (threadIdx.x % 32 == 0) {
        areas[3 * own] = angstrom2(sums.all, residue, points);
        areas[3 * own + 1] = angstrom2(sums.side, residue, points);
        areas[3 * own + 2] = angstrom2(sums.polar, residue, points);
    }
}
