#include "nearest.cuh"

// Lists for each residue the `count` residues of the structure whose heavy atoms are nearest,
// sorted by distance and then by index, with the distance of the two nearest atoms in A; one warp
// per residue. Rows behind the last neighbour are null.
KERNEL(32 * WARPS)
nearest_residues(const unsigned* header, const StructureSpan* structures,
                 const ResidueSpan* residues, const Atom* atoms, CELL_PARAMS,
                 const unsigned* residue_of, int* partners, float* min_distances, unsigned count,
                 unsigned reach, unsigned own_chain)
{
    wait_for_dependencies();
    each_warp(header, RESIDUES, [&](unsigned residue) {
        const Cells cells = CELLS_OF_PARAMS;
        const ByAtoms search(cells, structures, residues, atoms, residue_of, residue, own_chain,
                             warp_memory<Places, WARPS>().scratch);
        const unsigned start = search.structure.residue_start;
        list_nearest(search, count, reach, [&](unsigned rank, unsigned other) {
            const unsigned row = count * residue + rank;
            const bool is_neighbour = other != NO_NEIGHBOUR;
            partners[row] = is_neighbour ? int(other - start) : NULL_COUNT;
            min_distances[row] = is_neighbour ? angstrom(search.square(other)) : null_real();
        });
    });
}
