#include "shrake_rupley.cuh"
#include "work.cuh"

// Computes the areas of residues in the model, as sasa does, and the areas that other chains bury;
// one warp per residue.
KERNEL(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
sasa_delta(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
           const Atom* atoms, CELL_PARAMS, float* areas, float* deltas, unsigned first,
           unsigned points, unsigned probe)
{
    using namespace shrake_rupley;
    write_areas<Others::CHAINS>(header, structures, residues, atoms, CELLS_OF_PARAMS, areas, deltas,
                                first, points, probe);
}
