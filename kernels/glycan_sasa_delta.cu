#include "shrake_rupley.cuh"
#include "work.cuh"

// Computes the areas of residues that glycans bury, one warp per residue: the area in the polymer
// less the area in the polymer with its glycans, whose atoms follow the polymer's. The header has
// the test points as for sasa.
KERNEL(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
glycan_sasa_delta(const unsigned* header, const StructureSpan* structures,
                  const ResidueSpan* residues, const Atom* atoms, CELL_PARAMS, float* deltas,
                  unsigned first, unsigned points, unsigned probe)
{
    using namespace shrake_rupley;
    Workspace& work = warp_memory<Workspace, THREADS / 32>();
    each_warp(header, RESIDUES, [&](unsigned row) {
        const ResidueSpan residue = residues[row];
        const StructureSpan& structure = structures[residue.structure];
        unsigned long long area = 0;
        if (structure.glycan_atom_count > 0) {
            const unsigned end = structure.atom_start + structure.atom_count;
            const Cells cells = CELLS_OF_PARAMS;
            const Context context{work,
                                  cells,
                                  structure.atom_grid,
                                  residue.chain,
                                  (const float*)header + first,
                                  points,
                                  int(probe),
                                  end,
                                  end + structure.glycan_atom_count};
            area = residue_areas<Others::GLYCANS>(context, residue, atoms);
        }
        if (lane() == DELTA)
            deltas[row] = angstrom2(area, residue, points);
    });
}
