#include "contacts.cuh"
#include "work.cuh"

// Counts for each residue its contacts with later residues of the structure; one warp per residue.
KERNEL(32 * WARPS)
contact_degrees(const unsigned* header, const StructureSpan* structures,
                const ResidueSpan* residues, const Atom* points, CELL_PARAMS, int* degrees,
                unsigned cutoff, unsigned own_chain)
{
    each_warp(header, RESIDUES, [&](unsigned own) {
        const Atom point = points[own];
        unsigned count = 0;
        if (present(point)) {
            const Cells cells = CELLS_OF_PARAMS;
            const Grid& grid = structures[residues[own].structure].residue_grid;
            uint2* places = warp_memory<Places, WARPS>().of;
            each_contact(cells, grid, own, point, cutoff, own_chain, places,
                         [&](unsigned found, bool, unsigned) { count += __popc(found); });
        }
        if (lane() == 0)
            degrees[own] = int(count);
    });
}
