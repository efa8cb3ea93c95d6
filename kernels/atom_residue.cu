#include "work.cuh"

// Writes each atom's residue, as its index in the batch plus one; one thread per residue. Atoms of
// no residue keep the initial zero.
KERNEL(256)
atom_residue(const unsigned* header, const ResidueSpan* residues,
             unsigned* residue_of /* updated */)
{
    wait_for_dependencies();
    each_thread(header, RESIDUES, [&](unsigned row) {
        const ResidueSpan residue = residues[row];
        for (unsigned a = 0; a < residue.atom_count; ++a)
            residue_of[residue.atom_start + a] = row + 1;
    });
}
