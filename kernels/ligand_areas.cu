#include "shrake_rupley.cuh"
#include "work.cuh"

// Computes the area of each ligand alone, and the part of it that the rest of the model buries; one
// warp per ligand. The header has the test points as for sasa.
KERNEL(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
ligand_areas(const unsigned* header, const StructureSpan* structures, const ResidueSpan* ligands,
             const Atom* atoms, CELL_PARAMS, float* areas, unsigned first, unsigned points,
             unsigned probe)
{
    using namespace shrake_rupley;
    Workspace& work = warp_memory<Workspace, THREADS / 32>();
    each_warp(header, LIGANDS, [&](unsigned ligand_index) {
        const ResidueSpan ligand = ligands[ligand_index];
        const Cells cells = CELLS_OF_PARAMS;
        const Context context{work,
                              cells,
                              structures[ligand.structure].atom_grid,
                              ligand.chain,
                              (const float*)header + first,
                              points,
                              int(probe),
                              ligand.atom_start,
                              ligand.atom_start + ligand.atom_count};
        const unsigned long long area = residue_areas<Others::REST>(context, ligand, atoms);
        const unsigned long long buried = __shfl_sync(~0u, area, DELTA);
        if (lane() == ALL) {
            areas[2 * ligand_index] = angstrom2(area + buried, ligand, points);
            areas[2 * ligand_index + 1] = angstrom2(buried, ligand, points);
        }
    });
}
