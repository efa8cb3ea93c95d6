#include "radius.cuh"
#include "work.cuh"

// Computes the radius of gyration of each structure in A, one block per structure. `axis` is ATOMS
// for all atoms, and RESIDUES for one atom per residue; missing atoms are skipped.
KERNEL(BLOCK)
radius_of_gyration(const unsigned* header, const StructureSpan* structures, const Atom* atoms,
                   float* radii, unsigned axis)
{
    wait_for_dependencies();
    each_block(header, STRUCTURES, [&](unsigned structure_index) {
        const StructureSpan& structure = structures[structure_index];
        const unsigned start = axis == ATOMS ? structure.atom_start : structure.residue_start;
        const unsigned length = axis == ATOMS ? structure.atom_count : structure.residue_count;
        const float radius = radius_of_atoms([&](auto visit) {
            for (unsigned i = threadIdx.x; i < length; i += BLOCK)
                if (present(atoms[start + i]))
                    visit(atoms[start + i]);
        });
        if (threadIdx.x == 0)
            radii[structure_index] = radius;
    });
}
