#include "radius.cuh"

// Radius of gyration in A, one block a structure. `axis` says whether the atoms are
// all of a structure's or one a residue; missing ones are skipped.
extern "C" __global__ void __launch_bounds__(RG_THREADS)
radius_of_gyration(const unsigned* header, const Structure* structures, const Atom* atoms,
                   float* radii, unsigned axis)
{
    if (blockIdx.x >= header[STRUCTURES])
        return;
    const Structure& structure = structures[blockIdx.x];
    const unsigned start = axis == ATOMS ? structure.atom_start : structure.residue_start;
    const unsigned length = axis == ATOMS ? structure.atom_count : structure.residue_count;
    const float radius = radius_of_atoms([&](auto visit) {
        for (unsigned i = threadIdx.x; i < length; i += RG_THREADS)
            if (present(atoms[start + i]))
                visit(atoms[start + i]);
    });
    if (threadIdx.x == 0)
        radii[blockIdx.x] = radius;
}
