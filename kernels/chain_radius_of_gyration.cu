#include "radius.cuh"
#include "work.cuh"

// Computes the radius of gyration of each chain's atoms in A, one block per chain: the atoms of its
// residues and its loose ones, which for chain k are among the loose[2 k + 1] atoms from loose[2 k]
// on.
KERNEL(BLOCK)
chain_radius_of_gyration(const unsigned* header, const ResidueSpan* residues,
                         const ChainSpan* chains, const unsigned* members, const unsigned* loose,
                         const Atom* atoms, float* radii)
{
    wait_for_dependencies();
    each_block(header, CHAINS, [&](unsigned chain_index) {
        const ChainSpan chain = chains[chain_index];
        const unsigned first = loose[2 * chain_index], count = loose[2 * chain_index + 1];
        const float radius = radius_of_atoms([&](auto visit) {
            for (unsigned m = threadIdx.x; m < chain.count; m += BLOCK) {
                const ResidueSpan residue = residues[members[chain.member_start + m]];
                for (unsigned k = 0; k < residue.atom_count; ++k)
                    visit(atoms[residue.atom_start + k]);
            }
            for (unsigned k = threadIdx.x; k < count; k += BLOCK) {
                const Atom atom = atoms[first + k];
                if (present(atom) && tag_chain(atom.tag) == chain_index)
                    visit(atom);
            }
        });
        if (threadIdx.x == 0)
            radii[chain_index] = radius;
    });
}
