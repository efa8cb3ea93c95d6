#include "interaction_rows.cuh"

// Counts for each residue its interactions of each kind, [residues, INTERACTION_KINDS]; one thread per
// atom. counts[] starts zeroed.
KERNEL(256)
interaction_counts(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
                   const Atom* atoms, const AtomRoles* roles, const unsigned* rooms, const int* ends,
                   const int* partners, const int* kinds, int* counts /* updated */)
{
    wait_for_dependencies();
    const InteractionRows rows{structures, chains, atoms, roles, rooms, ends};
    each_thread(header, ATOMS, [&](unsigned atom) {
        rows.each(atom, [&](const StructureSpan& structure, unsigned, unsigned row) {
            const auto add = [&](unsigned owner) {
                const unsigned residue = structure.residue_start + owner;
                if (owner < structure.residue_count)
                    atomicAdd(&counts[INTERACTION_KINDS * residue + kinds[row]], 1);
            };
            add(roles[atom].owner);
            add(roles[structure.atom_start + unsigned(partners[row])].owner);
        });
    });
}
