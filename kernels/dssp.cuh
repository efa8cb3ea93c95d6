// Hydrogen bonds and bridges as the kernels of secondary structure hand them on.
#pragma once
#include "layout.cuh"

// What a residue can do in hydrogen bonds, in the last place of its hydrogen.
constexpr float NO_BACKBONE = 0.0f, ACCEPTOR = 1.0f, DONOR_AND_ACCEPTOR = 2.0f;

// The hydrogen bonds of the batch. A residue has four partners, which count from
// its structure's first residue: the two best acceptors of its N-H, then the two
// best donors to its O; energies in kcal/mol.
struct Bonds {
    const int* partners;
    const float* energies;

    // Acceptor 0 or 1 of a residue whose structure starts at `first`, as a residue
    // of the batch; -1 where there is no bond.
    __device__ inline int acceptor(unsigned donor, unsigned which, unsigned first) const
    {
        return energies[4 * donor + which] < -0.5f ? int(first) + partners[4 * donor + which] : -1;
    }

    // Whether residue `donor` gives a bond to residue `acceptor`.
    __device__ inline bool between(unsigned donor, unsigned to, unsigned first) const
    {
        return acceptor(donor, 0, first) == int(to) || acceptor(donor, 1, first) == int(to);
    }
};

// Bridges of a residue at most: each needs a bond of its own N-H, or the next
// residue's, and there are two of each, which may take part in two patterns.
constexpr unsigned BRIDGES_MAX = 8;
constexpr unsigned NO_BRIDGE = ~0u;

// The bridges of one residue in the order of their partners: twice the partner in
// the batch, plus one where the strands are antiparallel; NO_BRIDGE after the last.
struct alignas(16) Bridges { unsigned of[BRIDGES_MAX]; };
static_assert(sizeof(Bridges) == 32, "two 16-byte loads");

__device__ inline unsigned bridge_to(unsigned partner, bool antiparallel)
{
    return 2 * partner + antiparallel;
}

// What a residue is of the ladders, by bits.
constexpr unsigned IN_BRIDGE = 1, IN_STRAND = 2;
