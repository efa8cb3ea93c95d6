#include "layout.cuh"
#include "forest.cuh"

// Each selected residue that has a C-alpha is a tree of its own; one thread a
// residue.
extern "C" __global__ void __launch_bounds__(256)
cluster_start(const unsigned* header, const unsigned char* selected, const Atom* atoms,
              unsigned* parents)
{
    const unsigned own = blockIdx.x * blockDim.x + threadIdx.x;
    if (own < header[RESIDUES])
        parents[own] = selected[own] && present(atoms[own]) ? own : NO_TREE;
}
