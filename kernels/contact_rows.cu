#include "contacts.cuh"
#include "work.cuh"

// Lists for each residue its contacts with later residues of the structure, in their order, with
// the squared distances of the two points and of the two nearest atoms; one warp per residue. A
// structure's rows lie in its room: [structures, 2] has the first row and the number of rows. If
// they exceed it, no row is written. A residue's rows end at ends[]; `unsorted` is scratch memory.
KERNEL(32 * WARPS)
contact_rows(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
             const Atom* atoms, const Atom* points, CELL_PARAMS, const unsigned* rooms,
             const int* ends, unsigned* unsorted, int* partners, int* squares, int* least_squares,
             unsigned cutoff, unsigned own_chain)
{
    each_warp(header, RESIDUES, [&](unsigned own) {
        const Atom point = points[own];
        if (!present(point))
            return;
        const ResidueSpan residue = residues[own];
        const StructureSpan& structure = structures[residue.structure];
        const unsigned start = structure.residue_start;
        const unsigned total = unsigned(ends[start + structure.residue_count - 1]);
        if (total > rooms[2 * residue.structure + 1])
            return;
        const unsigned first
            = rooms[2 * residue.structure] + (own > start ? unsigned(ends[own - 1]) : 0);
        const Cells cells = CELLS_OF_PARAMS;
        uint2* places = warp_memory<Places, WARPS>().of;
        unsigned count = 0;
        each_contact(cells, structure.residue_grid, own, point, cutoff, own_chain, places,
                     [&](unsigned found, bool is_contact, unsigned other) {
                         if (is_contact)
                             unsorted[first + count + before(found)] = other;
                         count += __popc(found);
                     });
        __syncwarp();
        for (unsigned k = lane(); k < count; k += 32) {
            const unsigned other = unsorted[first + k];
            unsigned row = first;
            for (unsigned one = 0; one < count; ++one)
                row += unsorted[first + one] < other;
            const Atom there = points[other];
            const ResidueSpan partner = residues[other];
            unsigned least = ~0u;
            for (unsigned a = 0; a < residue.atom_count; ++a) {
                const Atom one = atoms[residue.atom_start + a];
                for (unsigned b = 0; b < partner.atom_count; ++b) {
                    const Atom two = atoms[partner.atom_start + b];
                    least = min(least, squared(one.x - two.x, one.y - two.y, one.z - two.z));
                }
            }
            partners[row] = int(other - start);
            squares[row] = int(squared(there.x - point.x, there.y - point.y, there.z - point.z));
            least_squares[row] = int(min(least, 0x7fffffffu));
        }
    });
}
