#include "work.cuh"

// The pLDDT of each residue, one thread a residue: of predicted models the B factor of the C-alpha,
// of others null.
KERNEL(256)
plddt(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
      const float* b, float* values)
{
    each_thread(header, RESIDUES, [&](unsigned own) {
        values[own] = structures[residues[own].structure].predicted ? b[own] : null_real();
    });
}
