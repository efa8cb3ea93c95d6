#include "cells.cuh"
#include "work.cuh"

// Finds the lowest and the highest chain among the atoms of each cell, one thread per atom. They
// are stored as CHAINS_MAX - lowest and highest + 1, so that both are maxima and an empty cell has
// zeros. Structures of one chain are left out.
KERNEL(256)
chain_range(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
            const Atom* atoms, unsigned* ranges /* updated */)
{
    wait_for_dependencies();
    each_thread(header, ATOMS, [&](unsigned atom_index) {
        const Atom atom = atoms[atom_index];
        if (!present(atom))
            return;
        const unsigned chain = tag_chain(atom.tag);
        const StructureSpan& structure = structures[chains[chain].structure];
        if (structure.chain_count < 2)
            return;
        const unsigned cell = cell_of(structure.atom_grid, atom.x, atom.y, atom.z);
        atomicMax(&ranges[2 * cell], CHAINS_MAX - chain);
        atomicMax(&ranges[2 * cell + 1], chain + 1);
    });
}
