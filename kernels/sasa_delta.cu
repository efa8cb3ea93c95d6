#include "areas.cuh"

// Computes the areas of residues in the model, as sasa does, and the areas that other chains bury;
// one warp per residue.
KERNEL(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
sasa_delta(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
           const Atom* atoms, CELL_PARAMS, float* areas, float* deltas, unsigned first,
           unsigned points, unsigned probe)
{
    wait_for_dependencies();
    areas::write_areas<shrake_rupley::ShrakeRupley, shrake_rupley::Others::CHAINS>(
        header, structures, residues, atoms, CELLS_OF_PARAMS, areas, deltas, first, points, probe);
}
