#include "layout.cuh"

// The residue of the batch that each atom is of, plus one; one thread a residue.
// Atoms of none keep the zero that they begin with.
extern "C" __global__ void __launch_bounds__(256)
atom_residue(const unsigned* header, const Residue* residues, unsigned* residue_of)
{
    const unsigned own = blockIdx.x * blockDim.x + threadIdx.x;
    if (own >= header[RESIDUES])
        return;
    const Residue residue = residues[own];
    for (unsigned a = 0; a < residue.atom_count; ++a)
        residue_of[residue.atom_start + a] = own + 1;
}
