#include "interaction_rows.cuh"
#include "interfaces.cuh"

// Counts the interactions of each kind between the two chains of each row of interface_rows, [rows,
// INTERACTION_KINDS]; one thread per atom. counts[] starts zeroed. Ligands are of no chain.
KERNEL(256)
interface_interactions(const unsigned* header, const StructureSpan* structures,
                       const ChainSpan* chains, const Atom* atoms, const AtomRoles* roles,
                       const unsigned* rooms, const int* ends, const int* partners, const int* kinds,
                       const unsigned* interface_rooms, const int* row_ends, const int* pairs,
                       int* counts /* updated */)
{
    wait_for_dependencies();
    const InteractionRows rows{structures, chains, atoms, roles, rooms, ends};
    each_thread(header, ATOMS, [&](unsigned atom) {
        rows.each(atom, [&](const StructureSpan& structure, unsigned structure_index, unsigned row) {
            const unsigned end = structure.atom_start + structure.atom_count;
            const unsigned other = structure.atom_start + unsigned(partners[row]);
            const unsigned a = tag_chain(atoms[atom].tag), b = tag_chain(atoms[other].tag);
            if (atom >= end || other >= end || a == b)
                return;
            const int later = int(max(a, b) - structure.chain_start);
            const unsigned* room = interface_rooms + 2 * structure_index;
            const Entries interfaces = interfaces_of(structure, row_ends, min(a, b), room);
            for (unsigned k = interfaces.begin; k < interfaces.end; ++k)
                if (pairs[2 * k + 1] == later)
                    atomicAdd(&counts[INTERACTION_KINDS * k + kinds[row]], 1);
        });
    });
}
