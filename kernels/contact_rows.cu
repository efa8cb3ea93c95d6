#include "contacts.cuh"
#include "pair_rows.cuh"

// Lists for each residue its contacts with later residues of the structure, by points, in their
// order, with the distances of the two points and of the two nearest atoms in A; one warp per
// residue. pair_rows.cuh describes rooms, ends and scratch memory.
KERNEL(32 * WARPS)
contact_rows(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
             const Atom* atoms, const Atom* points, CELL_PARAMS, const unsigned* rooms,
             const int* ends, unsigned* unsorted, int* partners, float* distances,
             float* min_distances, unsigned cutoff, unsigned own_chain)
{
    wait_for_dependencies();
    each_warp(header, RESIDUES, [&](unsigned residue_index) {
        const ResidueSpan residue = residues[residue_index];
        const StructureSpan& structure = structures[residue.structure];
        const Cells cells = CELLS_OF_PARAMS;
        const ByPoints search(cells, structure, points, residue_index, own_chain,
                              warp_memory<Places, WARPS>().scratch);
        if (!search.is_searchable())
            return;
        const auto each = [&](auto visit) { search.each_within(cutoff, residue_index, visit); };
        const auto write = [&](unsigned row, unsigned other) {
            partners[row] = int(other - structure.residue_start);
            distances[row] = angstrom(search.square(other));
            min_distances[row] = angstrom(least_squared(atoms, residue, residues[other]));
        };
        list_partners(structures, residue.structure, residue_index, rooms, ends, unsorted, each, write);
    });
}
