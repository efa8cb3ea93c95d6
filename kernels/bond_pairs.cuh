// The hydrogen bonds of a residue's N-H, found with a warp.
#pragma once
#include "dssp.cuh"
#include "gather.cuh"

// A bond's energy is below this, in cal/mol.
constexpr int BOND_ENERGY = -500;

// The N-H of `residue`, and the inputs of the search for its acceptors.
struct Donor {
    const Cells& cells;
    const Grid& grid;
    const Atom* ca;
    const Backbone* backbone;
    const float4* hydrogens;
    unsigned residue;
    uint2* places;

    __device__ inline bool has_hydrogen() const { return hydrogens[residue].w == DONOR; }

    // The energy of a bond with an acceptor in cal/mol; 0 for the residue before, which is no
    // acceptor.
    __device__ inline int energy(unsigned acceptor) const
    {
        if (hydrogens[acceptor].w == INCOMPLETE || residue == acceptor + 1)
            return 0;
        const Backbone& to = backbone[acceptor];
        return bond_energy(backbone[residue].n, hydrogens[residue], to.c, to.o);
    }

    // Calls visit(is_bond, acceptor) for 32 candidates at a time, one per lane. The residue must
    // have an amide hydrogen. With OTHER_CHAINS only acceptors of other chains are bonds.
    template <bool OTHER_CHAINS = false, typename Visit>
    __device__ inline void each_acceptor(Visit visit) const
    {
        const Atom atom = ca[residue];
        each_candidate(cells, grid, atom, BOND_REACH, places, [&](bool has_atom, unsigned sorted) {
            unsigned acceptor = 0;
            bool is_bond = false;
            if (has_atom && !(OTHER_CHAINS && same_chain(cells.tag[sorted], atom.tag))) {
                acceptor = cells.source[sorted];
                is_bond = acceptor != residue
                    && squared(cells.x[sorted] - atom.x, cells.y[sorted] - atom.y,
                               cells.z[sorted] - atom.z)
                        < BOND_REACH * BOND_REACH
                    && energy(acceptor) < BOND_ENERGY;
            }
            visit(is_bond, acceptor);
        });
    }
};
