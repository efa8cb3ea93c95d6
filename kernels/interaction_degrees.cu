#include "interactions.cuh"

// Counts the interactions of each atom with later atoms of its structure; one warp per atom. The
// header has the limits from index `first` on.
KERNEL(32 * WARPS)
interaction_degrees(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
                    const Atom* atoms, CELL_PARAMS, const AtomRoles* roles, const AtomFrame* frames,
                    int* degrees, unsigned first)
{
    wait_for_dependencies();
    each_warp(header, ATOMS, [&](unsigned atom) {
        const Cells cells = CELLS_OF_PARAMS;
        const AtomRoles mine = roles[atom];
        unsigned count = 0, structure_index;
        if (mine.roles != 0) {
            const StructureSpan& structure
                = structure_of(structures, chains, atoms[atom], structure_index);
            const InteractionInputs inputs{atoms, roles, frames, header + first};
            const InteractionSearch search{cells, structure.atom_grid, inputs, atom,
                                           {position(atoms[atom]), mine},
                                           warp_memory<Places, WARPS>().scratch};
            count = count_partners([&](auto visit) { search.each(visit); });
        }
        if (lane() == 0)
            degrees[atom] = int(count);
    });
}
