#include "shrake_rupley.cuh"
#include "work.cuh"

// Areas of residues in the model; one warp a residue. The test points stand in
// the header from `first` on, their x before their y and z.
KERNEL(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
sasa(const unsigned* header, const Structure* structures, const Residue* residues,
     const Atom* atoms, CELL_PARAMS, float* areas, unsigned first, unsigned points, unsigned probe)
{
    using namespace shrake_rupley;
    Workspace& work = workspace();
    each_warp(header, RESIDUES, [&](unsigned own) {
        const Residue residue = residues[own];
        const Cells cells = CELLS_OF_PARAMS;
        const Context context{work,
                              cells,
                              structures[residue.structure].atom_grid,
                              residue.chain,
                              (const float*)header + first,
                              points,
                              int(probe)};
        const unsigned long long area = residue_areas<false>(context, residue, atoms);
        if (lane() <= POLAR)
            areas[3 * own + lane()] = angstrom2(area, residue, points);
    });
}
