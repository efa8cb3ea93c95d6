#include "contacts.cuh"
#include "pair_rows.cuh"

// Counts for each residue its contacts with later residues of the structure, by points; one warp
// per residue.
KERNEL(32 * WARPS)
contact_degrees(const unsigned* header, const StructureSpan* structures,
                const ResidueSpan* residues, const Atom* points, CELL_PARAMS, int* degrees,
                unsigned cutoff, unsigned own_chain)
{
    wait_for_dependencies();
    each_warp(header, RESIDUES, [&](unsigned residue) {
        const Cells cells = CELLS_OF_PARAMS;
        const StructureSpan& structure = structures[residues[residue].structure];
        const ByPoints search(cells, structure, points, residue, own_chain,
                              warp_memory<Places, WARPS>().scratch);
        unsigned count = 0;
        if (search.is_searchable())
            count = count_partners([&](auto visit) { search.each_within(cutoff, residue, visit); });
        if (lane() == 0)
            degrees[residue] = int(count);
    });
}
