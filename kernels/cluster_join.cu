#include "forest.cuh"
#include "gather.cuh"
#include "work.cuh"

// Joins the trees of residues whose C-alphas are closer than the radius, of all chains or of the
// residue's chain; one warp per residue.
KERNEL(32 * WARPS)
cluster_join(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
             const Atom* ca, CELL_PARAMS, unsigned* parents /* updated */, unsigned radius,
             unsigned own_chain)
{
    wait_for_dependencies();
    each_warp(header, RESIDUES, [&](unsigned residue) {
        if (parents[residue] == NO_TREE)
            return;
        const Atom atom = ca[residue];
        const Cells cells = CELLS_OF_PARAMS;
        const Grid& grid = structures[residues[residue].structure].residue_grid;
        uint2* places = warp_memory<Places, WARPS>().scratch;
        each_candidate(cells, grid, atom, radius, places, [&](bool has_atom, unsigned other) {
            if (!has_atom || (own_chain && !same_chain(cells.tag[other], atom.tag)))
                return;
            const unsigned d2 = squared(cells.x[other] - atom.x, cells.y[other] - atom.y,
                                        cells.z[other] - atom.z);
            const unsigned source = cells.source[other];
            if (d2 < radius * radius && source < residue && parents[source] != NO_TREE)
                join(parents, residue, source);
        });
    });
}
