#include "work.cuh"

// Sums the numbers of interactions over the atoms of a structure, up to and including each of them;
// one block per structure.
KERNEL(BLOCK)
interaction_ends(const unsigned* header, const StructureSpan* structures, const int* degrees,
                 int* ends)
{
    wait_for_dependencies();
    __shared__ unsigned warp_sums[BLOCK / 32];
    each_block(header, STRUCTURES, [&](unsigned structure_index) {
        const StructureSpan& structure = structures[structure_index];
        sum_degrees(structure.atom_start, structure.atom_count + structure.ligand_atom_count, degrees,
                    ends, warp_sums);
    });
}
