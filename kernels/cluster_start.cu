#include "forest.cuh"
#include "work.cuh"

// Each selected residue that has a C-alpha is a tree of its own; one thread a residue.
KERNEL(256)
cluster_start(const unsigned* header, const unsigned char* selected, const Atom* atoms,
              unsigned* parents)
{
    each_thread(header, RESIDUES, [&](unsigned own) {
        parents[own] = selected[own] && present(atoms[own]) ? own : NO_TREE;
    });
}
