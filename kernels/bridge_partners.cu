#include "dssp.cuh"
#include "work.cuh"

// Inserts a bridge sorted by partner. A bridge that is parallel and antiparallel counts as
// parallel.
__device__ inline void add_bridge(Bridges& bridges, unsigned& count, unsigned bridge)
{
    unsigned place = 0;
    while (place < count && bridges.of[place] / 2 < bridge / 2)
        ++place;
    if (place < count && bridges.of[place] / 2 == bridge / 2) {
        bridges.of[place] = min(bridges.of[place], bridge);
        return;
    }
    for (unsigned at = count++; at > place; --at)
        bridges.of[at] = bridges.of[at - 1];
    bridges.of[place] = bridge;
}

// Finds the residues that each residue forms a bridge with, one thread per residue. If i and j are
// both joined to their neighbours, and three or more residues apart, the patterns are
//   parallel      j accepts from i+1 and gives to i-1, or
//                 j-1 accepts from i and j+1 gives to i,
//   antiparallel  j accepts from i and gives to i, or
//                 j-1 accepts from i+1 and j+1 gives to i-1,
// so each pattern consists of a bond of i's or i+1's N-H and one more bond.
KERNEL(256)
bridge_partners(const unsigned* header, const StructureSpan* structures,
                const ResidueSpan* residues, const float4* hydrogens, const int* partners,
                const float* energies, Bridges* bridges)
{
    const unsigned end = units(header, RESIDUES).end;
    each_thread(header, RESIDUES, [&](unsigned own) {
        const unsigned first = structures[residues[own].structure].residue_start;
        const Bonds bonds{partners, energies};
        const auto can_bridge = [&](unsigned at) {
            return joined(hydrogens, end, at) && joined(hydrogens, end, at + 1);
        };
        Bridges found;
        for (unsigned k = 0; k < BRIDGES_MAX; ++k)
            found.of[k] = NO_BRIDGE;
        if (can_bridge(own)) {
            unsigned length = 0;
            const auto test = [&](unsigned partner, unsigned donor, unsigned acceptor,
                                  bool antiparallel) {
                const unsigned apart = max(own, partner) - min(own, partner);
                if (apart >= 3 && can_bridge(partner) && bonds.between(donor, acceptor, first))
                    add_bridge(found, length, bridge_to(partner, antiparallel));
            };
            for (unsigned which = 0; which < 2; ++which) {
                const int from_own = bonds.acceptor(own, which, first);
                if (from_own >= 0) {
                    test(from_own, from_own, own, true);
                    test(from_own + 1, from_own + 2, own, false);
                }
                const int from_next = bonds.acceptor(own + 1, which, first);
                if (from_next >= 0) {
                    test(from_next, from_next, own - 1, false);
                    test(from_next + 1, from_next + 2, own - 1, true);
                }
            }
        }
        bridges[own] = found;
    });
}
