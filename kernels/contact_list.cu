#include "contact_list.cuh"
#include "gather.cuh"
#include "work.cuh"

// Lists for each residue the residues of its chain whose C-alphas are within the radius, sorted,
// and counts them; one warp per residue. If they exceed the list, only the number is valid.
KERNEL(32 * WARPS)
contact_list(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
             const Atom* atoms, CELL_PARAMS, unsigned* lists, unsigned* degrees, unsigned radius)
{
    wait_for_dependencies();
    __shared__ unsigned counts[WARPS], found[WARPS][CONTACTS_MAX];
    each_warp(header, RESIDUES, [&](unsigned residue) {
        const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        const Atom atom = atoms[residue];
        if (!present(atom)) {
            if (lane == 0)
                degrees[residue] = 0;
            return;
        }
        if (lane == 0)
            counts[warp] = 0;
        __syncwarp();
        const Cells cells = CELLS_OF_PARAMS;
        const Grid& grid = structures[residues[residue].structure].residue_grid;
        uint2* places = warp_memory<Places, WARPS>().scratch;
        each_candidate(cells, grid, atom, radius, places, [&](bool has_atom, unsigned other) {
            if (!has_atom)
                return;
            const unsigned d2 = squared(cells.x[other] - atom.x, cells.y[other] - atom.y,
                                        cells.z[other] - atom.z);
            const unsigned source = cells.source[other];
            if (d2 >= radius * radius || source == residue || !same_chain(cells.tag[other], atom.tag))
                return;
            const unsigned place = atomicAdd(&counts[warp], 1u);
            if (place < CONTACTS_MAX)
                found[warp][place] = source;
        });
        __syncwarp();
        const unsigned count = counts[warp];
        if (lane < min(count, CONTACTS_MAX)) {
            const unsigned contact = found[warp][lane];
            unsigned before = 0;
            for (unsigned k = 0; k < min(count, CONTACTS_MAX); ++k)
                before += found[warp][k] < contact;
            lists[CONTACTS_MAX * residue + before] = contact;
        }
        if (lane == 0)
            degrees[residue] = count;
    });
}
