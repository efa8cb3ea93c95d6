#include "contacts.cuh"
#include "pair_rows.cuh"

// Counts for each residue its contacts with later residues of the structure, by heavy atoms; one
// warp per residue.
KERNEL(32 * WARPS)
near_residue_degrees(const unsigned* header, const StructureSpan* structures,
                     const ResidueSpan* residues, const Atom* atoms, CELL_PARAMS,
                     const unsigned* residue_of, int* degrees, unsigned cutoff, unsigned own_chain)
{
    wait_for_dependencies();
    each_warp(header, RESIDUES, [&](unsigned residue) {
        const Cells cells = CELLS_OF_PARAMS;
        const ByAtoms search(cells, structures, residues, atoms, residue_of, residue, own_chain,
                             warp_memory<Places, WARPS>().scratch);
        unsigned count = 0;
        if (search.is_searchable())
            count = count_partners([&](auto visit) { search.each_within(cutoff, residue, visit); });
        if (lane() == 0)
            degrees[residue] = int(count);
    });
}
