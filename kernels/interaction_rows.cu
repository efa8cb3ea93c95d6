#include "interactions.cuh"

// Lists for each atom its interactions with later atoms of its structure, in their order, with the
// distance in A, and the angle in degrees where the kind has one; one warp per atom. The header has
// the limits from index `first` on. pair_rows.cuh describes rooms, ends and scratch memory.
KERNEL(32 * WARPS)
interaction_rows(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
                 const Atom* atoms, CELL_PARAMS, const AtomRoles* roles, const AtomFrame* frames,
                 const unsigned* rooms, const int* ends, unsigned* unsorted, int* partners, int* kinds,
                 float* distances, float* angles, unsigned first)
{
    wait_for_dependencies();
    each_warp(header, ATOMS, [&](unsigned atom) {
        const Cells cells = CELLS_OF_PARAMS;
        const AtomRoles mine = roles[atom];
        if (mine.roles == 0)
            return;
        unsigned structure_index;
        const StructureSpan& structure
            = structure_of(structures, chains, atoms[atom], structure_index);
        const InteractionInputs inputs{atoms, roles, frames, header + first};
        const InteractionSearch search{cells, structure.atom_grid, inputs, atom,
                                       {position(atoms[atom]), mine},
                                       warp_memory<Places, WARPS>().scratch};
        const unsigned start = structure.atom_start;
        const unsigned count = structure.atom_count + structure.ligand_atom_count;
        const auto each = [&](auto visit) { search.each(visit); };
        const auto write = [&](unsigned row, unsigned key) {
            const Interaction found = search.with(key / 2, key % 2);
            partners[row] = int(key / 2 - start);
            kinds[row] = int(found.kind);
            distances[row] = found.distance;
            angles[row] = found.angle;
        };
        list_in_room(rooms + 2 * structure_index, ends, start, count, atom, unsorted, each, write);
    });
}
