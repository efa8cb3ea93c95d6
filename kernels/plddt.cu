#include "layout.cuh"

// The pLDDT of each residue, one thread a residue: of predicted models the B factor
// of the C-alpha, of others null.
extern "C" __global__ void plddt(const unsigned* header, const Structure* structures,
                                 const Residue* residues, const float* b, float* values)
{
    const unsigned own = blockIdx.x * blockDim.x + threadIdx.x;
    if (own >= header[RESIDUES])
        return;
    values[own] = structures[residues[own].structure].predicted ? b[own] : null_real();
}
