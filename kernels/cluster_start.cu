#include "forest.cuh"
#include "work.cuh"

// Makes each selected residue with a C-alpha a tree of its own, one thread per residue.
KERNEL(256)
cluster_start(const unsigned* header, const unsigned char* selected, const Atom* ca,
              unsigned* parents)
{
    wait_for_dependencies();
    each_thread(header, RESIDUES, [&](unsigned residue) {
        parents[residue] = selected[residue] && present(ca[residue]) ? residue : NO_TREE;
    });
}
