#include "cells.cuh"
#include "work.cuh"

// Counts the atoms in each cell, one thread per atom. `axis` is ATOMS for all atoms, and RESIDUES
// for C-alphas or C-betas. counts[] starts zeroed.
KERNEL(256)
cell_count(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
           const Atom* atoms, unsigned* counts /* updated */, unsigned axis)
{
    wait_for_dependencies();
    each_thread(header, axis, [&](unsigned unit) {
        const Atom atom = atoms[unit];
        if (!present(atom))
            return;
        const StructureSpan& structure = structures[chains[tag_chain(atom.tag)].structure];
        const Grid& grid = axis == ATOMS ? structure.atom_grid : structure.residue_grid;
        atomicAdd(&counts[cell_of(grid, atom.x, atom.y, atom.z)], 1u);
    });
}
