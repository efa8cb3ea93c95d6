#include "dssp.cuh"
#include "work.cuh"

// Inserts a bridge sorted by partner. A bridge that is parallel and antiparallel counts as
// parallel.
__device__ inline void add_bridge(Bridges& bridges, unsigned& count, unsigned bridge)
{
    unsigned place = 0;
    while (place < count && bridges.codes[place] / 2 < bridge / 2)
        ++place;
    if (place < count && bridges.codes[place] / 2 == bridge / 2) {
        bridges.codes[place] = min(bridges.codes[place], bridge);
        return;
    }
    for (unsigned later_place = count++; later_place > place; --later_place)
        bridges.codes[later_place] = bridges.codes[later_place - 1];
    bridges.codes[place] = bridge;
}

// Finds the residues that each residue forms a bridge with, one thread per residue. If i and j are
// both joined to their neighbours, and three or more residues apart, the patterns are
//   parallel      j accepts from i+1 and donates to i-1, or
//                 j-1 accepts from i and j+1 donates to i,
//   antiparallel  j accepts from i and donates to i, or
//                 j-1 accepts from i+1 and j+1 donates to i-1,
// so each pattern consists of a bond of i's or i+1's N-H and one more bond.
KERNEL(256)
bridge_partners(const unsigned* header, const StructureSpan* structures,
                const ResidueSpan* residues, const float4* hydrogens, const int* partners,
                const float* energies, Bridges* bridges)
{
    wait_for_dependencies();
    const unsigned end = units(header, RESIDUES).end;
    each_thread(header, RESIDUES, [&](unsigned residue) {
        const unsigned first = structures[residues[residue].structure].residue_start;
        const Bonds bonds{partners, energies};
        const auto can_bridge = [&](unsigned candidate) {
            return joined(hydrogens, end, candidate) && joined(hydrogens, end, candidate + 1);
        };
        Bridges found;
        for (unsigned k = 0; k < BRIDGES_MAX; ++k)
            found.codes[k] = NO_BRIDGE;
        if (can_bridge(residue)) {
            unsigned length = 0;
            const auto test = [&](unsigned partner, unsigned donor, unsigned acceptor,
                                  bool antiparallel) {
                const unsigned apart = max(residue, partner) - min(residue, partner);
                if (apart >= 3 && can_bridge(partner) && bonds.between(donor, acceptor, first))
                    add_bridge(found, length, bridge_to(partner, antiparallel));
            };
            for (unsigned which = 0; which < 2; ++which) {
                const int from_own = bonds.acceptor(residue, which, first);
                if (from_own >= 0) {
                    test(from_own, from_own, residue, true);
                    test(from_own + 1, from_own + 2, residue, false);
                }
                const int from_next = bonds.acceptor(residue + 1, which, first);
                if (from_next >= 0) {
                    test(from_next, from_next, residue - 1, false);
                    test(from_next + 1, from_next + 2, residue - 1, true);
                }
            }
        }
        bridges[residue] = found;
    });
}
