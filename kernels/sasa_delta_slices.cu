#include "areas.cuh"
#include "lee_richards.cuh"

// Computes the areas of residues in the model, as sasa_slices does, and the areas that other chains
// bury; one warp per residue.
KERNEL(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
sasa_delta_slices(const unsigned* header, const StructureSpan* structures,
                  const ResidueSpan* residues, const Atom* atoms, CELL_PARAMS, float* areas,
                  float* deltas, unsigned slices, unsigned probe)
{
    wait_for_dependencies();
    areas::write_areas<lee_richards::LeeRichards, shrake_rupley::Others::CHAINS>(
        header, structures, residues, atoms, CELLS_OF_PARAMS, areas, deltas, 0, slices, probe);
}
