#include "areas.cuh"
#include "lee_richards.cuh"

// Computes the areas of ligands, as ligand_areas does, by Lee and Richards; one warp per ligand.
KERNEL(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
ligand_areas_slices(const unsigned* header, const StructureSpan* structures,
                    const ResidueSpan* ligands, const Atom* atoms, CELL_PARAMS, float* areas,
                    unsigned slices, unsigned probe)
{
    wait_for_dependencies();
    areas::write_ligand_areas<lee_richards::LeeRichards>(
        header, structures, ligands, atoms, CELLS_OF_PARAMS, areas, 0, slices, probe);
}
