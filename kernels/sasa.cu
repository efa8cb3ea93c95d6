#include "areas.cuh"

// Computes the areas of residues in the model, one warp per residue. The header has the test points
// from index `first` on: x of all points, then y, then z.
KERNEL(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
sasa(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
     const Atom* atoms, CELL_PARAMS, float* areas, unsigned first, unsigned points, unsigned probe)
{
    wait_for_dependencies();
    areas::write_areas<shrake_rupley::ShrakeRupley, shrake_rupley::Others::NONE>(
        header, structures, residues, atoms, CELLS_OF_PARAMS, areas, nullptr, first, points, probe);
}
