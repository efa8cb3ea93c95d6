#include "protrusion.cuh"

// Computes the mean and the largest cx over each residue's atoms, one warp per residue: the ratio of
// free to filled volume in the sphere around an atom, which atoms of the residue's chain fill.
KERNEL(32 * WARPS, 8)
protrusion_own_chain(const unsigned* header, const StructureSpan* structures,
                     const ResidueSpan* residues, const Atom* atoms, CELL_PARAMS, float* cx,
                     unsigned radius, double sphere_volume, double atom_volume)
{
    wait_for_dependencies();
    write_protrusion<true>(header, structures, residues, atoms, CELLS_OF_PARAMS, cx, radius,
                           sphere_volume, atom_volume);
}
