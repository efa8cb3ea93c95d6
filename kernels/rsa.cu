#include "rsa.cuh"

// Theoretical largest areas in A^2, by one-letter code from A on (Tien et al. 2013); 0 for a letter
// that is no residue.
__device__ const float RSA_AREA_MAX[26] = {
    129, 0,   167, 193, 223, 240, 104, 224, 197, 0, 236, 201, 224,
    195, 0,   159, 225, 274, 155, 172, 0,   174, 285, 0, 263, 0,
};

// Computes areas relative to their theoretical maximum, and their means along the chain; one block
// per chain.
KERNEL(BLOCK)
rsa(const unsigned* header, const ResidueSpan* residues, const ChainSpan* chains,
    const unsigned* members, const float* areas, float* relative)
{
    wait_for_dependencies();
    relative_areas(header, residues, chains, members, areas, relative,
                   [](unsigned letter) { return RSA_AREA_MAX[letter]; });
}
