#include "areas.cuh"
#include "lee_richards.cuh"

// Computes the areas of atoms, as atom_sasa does, by Lee and Richards; one warp per unit of `axis`.
KERNEL(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
atom_sasa_slices(const unsigned* header, const StructureSpan* structures,
                 const ResidueSpan* residues, const Atom* atoms, CELL_PARAMS,
                 float* areas /* updated */, unsigned axis, unsigned slices, unsigned probe,
                 unsigned own_chain)
{
    wait_for_dependencies();
    areas::write_atom_areas<lee_richards::LeeRichards>(
        header, structures, residues, atoms, CELLS_OF_PARAMS, areas, axis, 0, slices, probe,
        own_chain);
}
