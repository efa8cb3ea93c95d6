#include "areas.cuh"
#include "lee_richards.cuh"

// Computes the areas of residues in their chain alone, as sasa_slices does in the model; one warp per
// residue.
KERNEL(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
sasa_own_chain_slices(const unsigned* header, const StructureSpan* structures,
                      const ResidueSpan* residues, const Atom* atoms, CELL_PARAMS, float* areas,
                      unsigned slices, unsigned probe)
{
    wait_for_dependencies();
    areas::write_areas<lee_richards::LeeRichards, shrake_rupley::Others::ONE_CHAIN>(
        header, structures, residues, atoms, CELLS_OF_PARAMS, areas, nullptr, 0, slices, probe);
}
