#include "bond_pairs.cuh"
#include "pair_rows.cuh"

// Counts the hydrogen bonds of each residue's N-H; one warp per residue.
KERNEL(32 * WARPS)
bond_degrees(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
             const Atom* ca, CELL_PARAMS, const Backbone* backbone, const float4* hydrogens,
             int* degrees)
{
    wait_for_dependencies();
    each_warp(header, RESIDUES, [&](unsigned residue) {
        const Cells cells = CELLS_OF_PARAMS;
        const Grid& grid = structures[residues[residue].structure].residue_grid;
        uint2* places = warp_memory<Places, WARPS>().scratch;
        const Donor donor{cells, grid, ca, backbone, hydrogens, residue, places};
        unsigned count = 0;
        if (donor.has_hydrogen())
            count = count_partners([&](auto visit) { donor.each_acceptor(visit); });
        if (lane() == 0)
            degrees[residue] = int(count);
    });
}
