// The hydrogen bonds of a residue's N-H, found with a warp.
#pragma once
#include "dssp.cuh"
#include "gather.cuh"

// A bond's energy is below this, in cal/mol.
constexpr int BOND_ENERGY = -500;

struct Donor {
    const Cells& cells;
    const Grid& grid;
    const Atom* ca;
    const Backbone* backbone;
    const float4* hydrogens;
    unsigned own;
    uint2* places;

    __device__ inline bool has_hydrogen() const { return hydrogens[own].w == DONOR; }

    // The energy with an acceptor in cal/mol. The O of the residue before is none.
    __device__ inline int energy(unsigned acceptor) const
    {
        if (hydrogens[acceptor].w == INCOMPLETE || own == acceptor + 1)
            return 0;
        const Backbone& to = backbone[acceptor];
        return bond_energy(backbone[own].n, hydrogens[own], to.c, to.o);
    }

    // Calls visit(is_bond, acceptor) for 32 candidates at a time, one per lane. The residue must have
    // an amide hydrogen. With OTHER_CHAINS, acceptors of the own chain are no bonds.
    template <bool OTHER_CHAINS = false, typename Visit>
    __device__ inline void each_acceptor(Visit visit) const
    {
        const Atom atom = ca[own];
        each_candidate(cells, grid, atom, BOND_REACH, places, [&](bool is_one, unsigned at) {
            unsigned acceptor = 0;
            bool is_bond = false;
            if (is_one && !(OTHER_CHAINS && same_chain(cells.tag[at], atom.tag))) {
                acceptor = cells.source[at];
                is_bond = acceptor != own
                    && squared(cells.x[at] - atom.x, cells.y[at] - atom.y, cells.z[at] - atom.z)
                        < BOND_REACH * BOND_REACH
                    && energy(acceptor) < BOND_ENERGY;
            }
            visit(is_bond, acceptor);
        });
    }
};
