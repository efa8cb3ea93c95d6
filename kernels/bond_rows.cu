#include "bond_pairs.cuh"
#include "pair_rows.cuh"

// Lists the acceptors of each residue's N-H in their order, with the energies of the bonds in
// kcal/mol; one warp per residue. pair_rows.cuh describes rooms, ends and scratch memory.
KERNEL(32 * WARPS)
bond_rows(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
          const Atom* ca, CELL_PARAMS, const Backbone* backbone, const float4* hydrogens,
          const unsigned* rooms, const int* ends, unsigned* unsorted, int* acceptors,
          float* energies)
{
    wait_for_dependencies();
    each_warp(header, RESIDUES, [&](unsigned residue) {
        const unsigned structure_index = residues[residue].structure;
        const StructureSpan& structure = structures[structure_index];
        const Cells cells = CELLS_OF_PARAMS;
        uint2* places = warp_memory<Places, WARPS>().scratch;
        const Donor donor{cells, structure.residue_grid, ca, backbone, hydrogens, residue, places};
        if (!donor.has_hydrogen())
            return;
        const auto each = [&](auto visit) { donor.each_acceptor(visit); };
        const auto write = [&](unsigned row, unsigned acceptor) {
            acceptors[row] = int(acceptor - structure.residue_start);
            energies[row] = float(donor.energy(acceptor)) / 1000.0f;
        };
        list_partners(structures, structure_index, residue, rooms, ends, unsorted, each, write);
    });
}
