#include "shrake_rupley.cuh"

// Areas of residues in the model; one warp a residue. The test points stand in
// the header from `first` on, their x before their y and z.
extern "C" __global__ void __launch_bounds__(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
sasa(const unsigned* header, const Structure* structures, const Residue* residues,
     const Atom* atoms, CELL_PARAMS, float* areas, unsigned first, unsigned points, unsigned probe)
{
    using namespace shrake_rupley;
    const unsigned own = (blockIdx.x * THREADS + threadIdx.x) / 32;
    if (own >= header[RESIDUES])
        return;
    __shared__ Workspace workspaces[THREADS / 32];
    const Residue residue = residues[own];
    const Cells cells = CELLS_OF_PARAMS;
    const Context context{workspaces[threadIdx.x / 32],
                          cells,
                          structures[residue.structure].atom_grid,
                          residue.chain,
                          (const float*)header + first,
                          points,
                          int(probe)};
    const unsigned long long area = residue_areas<false>(context, residue, atoms);
    if (lane() <= POLAR)
        areas[3 * own + lane()] = angstrom2(area, residue, points);
}
