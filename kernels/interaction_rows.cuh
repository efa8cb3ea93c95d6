// The rows of interactions that interaction_rows.cu listed.
#pragma once
#include "work.cuh"

constexpr unsigned INTERACTION_KINDS = 8;

struct InteractionRows {
    const StructureSpan* structures;
    const ChainSpan* chains;
    const Atom* atoms;
    const AtomRoles* roles;
    const unsigned* rooms;
    const int* ends;

    // Calls visit(structure, its index, row) for each row of an atom, which is the first of its pair.
    // Rows that exceeded their structure's room were not listed.
    template <typename Visit> __device__ inline void each(unsigned atom, Visit visit) const
    {
        if (roles[atom].roles == 0)
            return;
        const unsigned index = chains[tag_chain(atoms[atom].tag)].structure;
        const StructureSpan& structure = structures[index];
        const unsigned start = structure.atom_start;
        const unsigned count = structure.atom_count + structure.ligand_atom_count;
        const unsigned* room = rooms + 2 * index;
        if (unsigned(ends[start + count - 1]) > room[1])
            return;
        const unsigned end = room[0] + unsigned(ends[atom]);
        for (unsigned row = room[0] + (atom > start ? unsigned(ends[atom - 1]) : 0); row < end; ++row)
            visit(structure, index, row);
    }
};
