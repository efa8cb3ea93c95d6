#include "cells.cuh"
#include "work.cuh"

// Sorts the atoms by cell, one thread per atom. The order within a cell is undefined. counts[]
// counts down to zero.
KERNEL(256)
cell_fill(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
          const Atom* atoms, const unsigned* start, unsigned* counts /* updated */, int* x, int* y,
          int* z, AtomTag* tag, unsigned* source, unsigned axis)
{
    each_thread(header, axis, [&](unsigned own) {
        const Atom atom = atoms[own];
        if (!present(atom))
            return;
        const StructureSpan& structure = structures[chains[tag_chain(atom.tag)].structure];
        const Grid& grid = axis == ATOMS ? structure.atom_grid : structure.residue_grid;
        const unsigned cell = cell_of(grid, atom.x, atom.y, atom.z);
        const unsigned place = start[cell] + atomicSub(&counts[cell], 1u) - 1;
        x[place] = atom.x;
        y[place] = atom.y;
        z[place] = atom.z;
        tag[place] = atom.tag;
        source[place] = own;
    });
}
