#include "cells.cuh"
#include "work.cuh"

// Sorts the atoms by cell, one thread per atom. The order within a cell is undefined. counts[]
// counts down to zero. Atoms of a structure that is too dense keep their places, and its cells are
// empty.
KERNEL(256)
cell_fill(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
          const Atom* atoms, const unsigned* start, const unsigned* flags,
          unsigned* counts /* updated */, int* x, int* y, int* z, AtomTag* tag, unsigned* source,
          unsigned axis, unsigned flag_shift)
{
    wait_for_dependencies();
    each_thread(header, axis, [&](unsigned unit) {
        const Atom atom = atoms[unit];
        if (!present(atom))
            return;
        const unsigned structure_index = chains[tag_chain(atom.tag)].structure;
        const StructureSpan& structure = structures[structure_index];
        unsigned place = unit;
        if ((flags[structure_index] >> flag_shift & FLAG_MASK) == 0) {
            const Grid& grid = axis == ATOMS ? structure.atom_grid : structure.residue_grid;
            const unsigned cell = cell_of(grid, atom.x, atom.y, atom.z);
            place = start[cell] + atomicSub(&counts[cell], 1u) - 1;
        }
        x[place] = atom.x;
        y[place] = atom.y;
        z[place] = atom.z;
        tag[place] = atom.tag;
        source[place] = unit;
    });
}
