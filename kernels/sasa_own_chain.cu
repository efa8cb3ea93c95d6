#include "areas.cuh"

// Computes the areas of residues in their chain alone, as sasa does in the model; one warp per
// residue.
KERNEL(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
sasa_own_chain(const unsigned* header, const StructureSpan* structures,
               const ResidueSpan* residues, const Atom* atoms, CELL_PARAMS, float* areas,
               unsigned first, unsigned points, unsigned probe)
{
    wait_for_dependencies();
    areas::write_areas<shrake_rupley::ShrakeRupley, shrake_rupley::Others::ONE_CHAIN>(
        header, structures, residues, atoms, CELLS_OF_PARAMS, areas, nullptr, first, points, probe);
}
