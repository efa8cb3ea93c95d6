#include "cells.cuh"
#include "work.cuh"

// Atoms in each cell; one thread an atom. `axis` says whether the atoms are all of a structure's or
// one a residue. counts[] begins at zeros.
KERNEL(256)
cell_count(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
           const Atom* atoms, unsigned* counts /* updated */, unsigned axis)
{
    each_thread(header, axis, [&](unsigned own) {
        const Atom atom = atoms[own];
        if (!present(atom))
            return;
        const StructureSpan& structure = structures[chains[tag_chain(atom.tag)].structure];
        const Grid& grid = axis == ATOMS ? structure.atom_grid : structure.residue_grid;
        atomicAdd(&counts[cell_of(grid, atom.x, atom.y, atom.z)], 1u);
    });
}
