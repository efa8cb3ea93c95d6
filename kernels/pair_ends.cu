#include "work.cuh"

// Sums the numbers of pairs over the residues of a structure, up to and including each of them; one
// block per structure.
KERNEL(BLOCK)
pair_ends(const unsigned* header, const StructureSpan* structures, const int* degrees, int* ends)
{
    wait_for_dependencies();
    __shared__ unsigned warp_sums[BLOCK / 32];
    each_block(header, STRUCTURES, [&](unsigned structure_index) {
        const StructureSpan& structure = structures[structure_index];
        sum_degrees(structure.residue_start, structure.residue_count, degrees, ends, warp_sums);
    });
}
