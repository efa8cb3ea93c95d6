#include "areas.cuh"

// Computes the area of each ligand alone, and the part of it that the rest of the model buries; one
// warp per ligand. The header has the test points as for sasa.
KERNEL(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
ligand_areas(const unsigned* header, const StructureSpan* structures, const ResidueSpan* ligands,
             const Atom* atoms, CELL_PARAMS, float* areas, unsigned first, unsigned points,
             unsigned probe)
{
    wait_for_dependencies();
    areas::write_ligand_areas<shrake_rupley::ShrakeRupley>(
        header, structures, ligands, atoms, CELLS_OF_PARAMS, areas, first, points, probe);
}
