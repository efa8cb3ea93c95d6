#include "work.cuh"

// The residue of the batch that each atom is of, plus one; one thread a residue. Atoms of none keep
// the zero that they begin with.
KERNEL(256)
atom_residue(const unsigned* header, const ResidueSpan* residues,
             unsigned* residue_of /* updated */)
{
    each_thread(header, RESIDUES, [&](unsigned own) {
        const ResidueSpan residue = residues[own];
        for (unsigned a = 0; a < residue.atom_count; ++a)
            residue_of[residue.atom_start + a] = own + 1;
    });
}
