#include "nearest.cuh"

// Lists for each residue the `count` residues of the structure whose points are nearest, sorted by
// distance and then by index, with the distances of the two points and of the two nearest atoms in
// A; one warp per residue. Rows behind the last neighbour are null.
KERNEL(32 * WARPS)
nearest_points(const unsigned* header, const StructureSpan* structures,
               const ResidueSpan* residues, const Atom* atoms, const Atom* points, CELL_PARAMS,
               int* partners, float* distances, float* min_distances, unsigned count,
               unsigned reach, unsigned own_chain)
{
    wait_for_dependencies();
    each_warp(header, RESIDUES, [&](unsigned residue_index) {
        const ResidueSpan residue = residues[residue_index];
        const StructureSpan& structure = structures[residue.structure];
        const Cells cells = CELLS_OF_PARAMS;
        const ByPoints search(cells, structure, points, residue_index, own_chain,
                              warp_memory<Places, WARPS>().scratch);
        list_nearest(search, count, reach, [&](unsigned rank, unsigned other) {
            const unsigned row = count * residue_index + rank;
            const bool is_neighbour = other != NO_NEIGHBOUR;
            partners[row] = is_neighbour ? int(other - structure.residue_start) : NULL_COUNT;
            distances[row] = is_neighbour ? angstrom(search.square(other)) : null_real();
            min_distances[row] = is_neighbour
                ? angstrom(least_squared(atoms, residue, residues[other]))
                : null_real();
        });
    });
}
