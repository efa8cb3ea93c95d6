#include "bond_pairs.cuh"
#include "interfaces.cuh"

// Counts the hydrogen bonds between the backbones of the two chains of each row of interface_rows;
// one warp per donor.
KERNEL(32 * WARPS)
interface_bonds(const unsigned* header, const StructureSpan* structures,
                const ResidueSpan* residues, const Atom* ca, CELL_PARAMS,
                const Backbone* backbone, const float4* hydrogens, const unsigned* rooms,
                const int* row_ends, const int* pairs, int* bonds /* updated */)
{
    wait_for_dependencies();
    each_warp(header, RESIDUES, [&](unsigned donor_index) {
        const ResidueSpan residue = residues[donor_index];
        const StructureSpan& structure = structures[residue.structure];
        const Cells cells = CELLS_OF_PARAMS;
        uint2* places = warp_memory<Places, WARPS>().scratch;
        const Donor donor{cells,     structure.residue_grid, ca,    backbone,
                          hydrogens, donor_index,            places};
        if (!donor.has_hydrogen() || structure.chain_count < 2)
            return;
        const unsigned* room = rooms + 2 * residue.structure;
        donor.each_acceptor<true>([&](bool is_bond, unsigned acceptor) {
            if (!is_bond)
                return;
            const unsigned chain = residues[acceptor].chain;
            const unsigned earlier = min(chain, residue.chain);
            const int later = int(max(chain, residue.chain) - structure.chain_start);
            const Entries rows = interfaces_of(structure, row_ends, earlier, room);
            for (unsigned row = rows.begin; row < rows.end; ++row)
                if (pairs[2 * row + 1] == later)
                    atomicAdd(&bonds[row], 1);
        });
    });
}
