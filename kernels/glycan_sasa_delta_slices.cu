#include "areas.cuh"
#include "lee_richards.cuh"

// Computes the areas of residues that glycans bury, as glycan_sasa_delta does, by Lee and Richards;
// one warp per residue.
KERNEL(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
glycan_sasa_delta_slices(const unsigned* header, const StructureSpan* structures,
                         const ResidueSpan* residues, const Atom* atoms, CELL_PARAMS, float* deltas,
                         unsigned slices, unsigned probe)
{
    wait_for_dependencies();
    areas::write_glycan_deltas<lee_richards::LeeRichards>(
        header, structures, residues, atoms, CELLS_OF_PARAMS, deltas, 0, slices, probe);
}
