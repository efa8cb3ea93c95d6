#include "interfaces.cuh"

// Lists the partners of each residue in ascending order, and counts for each the residues of that
// chain with an atom closer than `cutoff` to one of the residue's atoms; one warp per residue.
// `rooms` is [structures, 2]: the first unit of room, and the number of units. A residue's partners
// end at ends[].
KERNEL(32 * WARPS)
interface_partners(const unsigned* header, const StructureSpan* structures,
                   const ResidueSpan* residues, const Atom* atoms, CELL_PARAMS,
                   const unsigned* residue_of, const unsigned* ranges, const unsigned* rooms,
                   const int* ends, unsigned* partners, unsigned* contacts, unsigned cutoff,
                   unsigned probe)
{
    wait_for_dependencies();
    each_warp(header, RESIDUES, [&](unsigned row) {
        const ResidueSpan residue = residues[row];
        if (residue.atom_count == 0)
            return;
        const StructureSpan& structure = structures[residue.structure];
        const Entries entries = partners_of(structure, ends, row, rooms + 2 * residue.structure);
        if (entries.begin == entries.end)
            return;
        const Cells cells = CELLS_OF_PARAMS;
        unsigned next = entries.begin;
        each_partner(cells, structure, ranges, residue, atoms, cutoff, probe,
                     [&](unsigned base, unsigned long long chains) {
            for (; chains; chains &= chains - 1, ++next) {
                if (lane() == 0) {
                    partners[next] = base + __ffsll(chains) - 1;
                    contacts[next] = 0;
                }
            }
        });
        __syncwarp();
        Position low, high;
        corners(residue, atoms, low, high);
        const auto visit = [&](unsigned sorted) {
            const unsigned source = cells.source[sorted], other = residue_of[source];
            if (other == 0
                || !is_within({cells.x[sorted], cells.y[sorted], cells.z[sorted]}, residue, atoms,
                              cutoff))
                return;
            // Only the first near atom of the other residue counts the residue.
            for (unsigned a = residues[other - 1].atom_start; a < source; ++a)
                if (is_within(position(atoms[a]), residue, atoms, cutoff))
                    return;
            const unsigned chain = tag_chain(cells.tag[sorted]);
            unsigned place = entries.begin;
            while (partners[place] != chain)
                ++place;
            atomicAdd(&contacts[place], 1u);
        };
        each_of_other_chains(cells, structure.atom_grid, ranges, residue.chain, low, high,
                             int(cutoff), visit);
    });
}
