#include "work.cuh"

// Writes the pLDDT of each residue, one thread per residue: the B factor of the C-alpha in
// predicted models, null in others.
KERNEL(256)
plddt(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
      const float* b, float* values)
{
    wait_for_dependencies();
    each_thread(header, RESIDUES, [&](unsigned residue) {
        values[residue] = structures[residues[residue].structure].predicted ? b[residue] : null_real();
    });
}
