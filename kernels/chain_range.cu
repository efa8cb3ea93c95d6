#include "cells.cuh"
#include "work.cuh"

// Which chains the atoms of each cell are of, from the lowest to the highest: the lowest as
// CHAINS_MAX less it and the highest plus one, so that both are largest and zeros are an empty
// cell; one thread an atom. Structures of one chain are left out.
KERNEL(256)
chain_range(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
            const Atom* atoms, unsigned* ranges /* updated */)
{
    each_thread(header, ATOMS, [&](unsigned own) {
        const Atom atom = atoms[own];
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
