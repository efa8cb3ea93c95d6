#include "contacts.cuh"
#include "pair_rows.cuh"

// Lists for each residue its contacts with later residues of the structure, by heavy atoms, in
// their order, with the distance of the two nearest atoms in A; one warp per residue. pair_rows.cuh
// describes rooms, ends and scratch memory.
KERNEL(32 * WARPS)
near_residue_rows(const unsigned* header, const StructureSpan* structures,
                  const ResidueSpan* residues, const Atom* atoms, CELL_PARAMS,
                  const unsigned* residue_of, const unsigned* rooms, const int* ends,
                  unsigned* unsorted, int* partners, float* min_distances, unsigned cutoff,
                  unsigned own_chain)
{
    wait_for_dependencies();
    each_warp(header, RESIDUES, [&](unsigned residue) {
        const Cells cells = CELLS_OF_PARAMS;
        const ByAtoms search(cells, structures, residues, atoms, residue_of, residue, own_chain,
                             warp_memory<Places, WARPS>().scratch);
        if (!search.is_searchable())
            return;
        const unsigned start = search.structure.residue_start;
        const auto each = [&](auto visit) { search.each_within(cutoff, residue, visit); };
        const auto write = [&](unsigned row, unsigned other) {
            partners[row] = int(other - start);
            min_distances[row] = angstrom(search.square(other));
        };
        list_partners(structures, residues[residue].structure, residue, rooms, ends, unsorted, each, write);
    });
}
