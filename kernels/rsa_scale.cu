#include "rsa.cuh"

// Computes areas relative to the maxima of another scale, and their means along the chain; one block
// per chain. The header has the largest area of each letter from index `first` on.
KERNEL(BLOCK)
rsa_scale(const unsigned* header, const ResidueSpan* residues, const ChainSpan* chains,
          const unsigned* members, const float* areas, float* relative, unsigned first)
{
    wait_for_dependencies();
    const float* area_max = (const float*)header + first;
    relative_areas(header, residues, chains, members, areas, relative,
                   [&](unsigned letter) { return area_max[letter]; });
}
