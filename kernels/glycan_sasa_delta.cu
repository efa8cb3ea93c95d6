#include "areas.cuh"

// Computes the areas of residues that glycans bury, one warp per residue: the area in the polymer
// less the area in the polymer with its glycans, whose atoms follow the polymer's. The header has
// the test points as for sasa.
KERNEL(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
glycan_sasa_delta(const unsigned* header, const StructureSpan* structures,
                  const ResidueSpan* residues, const Atom* atoms, CELL_PARAMS, float* deltas,
                  unsigned first, unsigned points, unsigned probe)
{
    wait_for_dependencies();
    areas::write_glycan_deltas<shrake_rupley::ShrakeRupley>(
        header, structures, residues, atoms, CELLS_OF_PARAMS, deltas, first, points, probe);
}
