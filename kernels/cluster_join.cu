#include "forest.cuh"
#include "gather.cuh"
#include "work.cuh"

// Joins the trees of residues whose C-alphas are closer than the radius, of all chains or of the
// residue's chain; one warp per residue.
KERNEL(32 * WARPS)
cluster_join(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
             const Atom* atoms, CELL_PARAMS, unsigned* parents /* updated */, unsigned radius,
             unsigned own_chain)
{
    each_warp(header, RESIDUES, [&](unsigned own) {
        if (parents[own] == NO_TREE)
            return;
        const Atom atom = atoms[own];
        const Cells cells = CELLS_OF_PARAMS;
        const Grid& grid = structures[residues[own].structure].residue_grid;
        uint2* places = warp_memory<Places, WARPS>().of;
        each_candidate(cells, grid, atom, radius, places, [&](bool is_one, unsigned other) {
            if (!is_one || (own_chain && !same_chain(cells.tag[other], atom.tag)))
                return;
            const unsigned d2 = squared(cells.x[other] - atom.x, cells.y[other] - atom.y,
                                        cells.z[other] - atom.z);
            const unsigned source = cells.source[other];
            if (d2 < radius * radius && source < own && parents[source] != NO_TREE)
                join(parents, own, source);
        });
    });
}
