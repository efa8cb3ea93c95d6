// Hydrogen bonds and bridges as the kernels of secondary structure hand them on.
#pragma once
#include "layout.cuh"

// What a residue is, in the last place of its hydrogen: one that lacks a backbone atom, the first
// of a stretch of linked residues that lack none, another, another with a hydrogen. Each is also
// what stands before it, but for the first.
constexpr float INCOMPLETE = 0.0f, FIRST = 1.0f, JOINED = 2.0f, DONOR = 3.0f;

// Whether residue `at` of a structure that ends at `end` continues a stretch.
__device__ inline bool joined(const float4* hydrogens, unsigned end, unsigned at)
{
    return at < end && hydrogens[at].w >= JOINED;
}

// The hydrogen bonds of the batch. A residue has four partners, which count from its structure's
// first residue: the two best acceptors of its N-H, then the two best donors to its O; energies in
// kcal/mol.
struct Bonds {
    const int* partners;
    const float* energies;

    // Acceptor 0 or 1 of a residue whose structure starts at `first`, as a residue of the batch; -1
    // where there is no bond.
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

// Bridges of a residue at most: each needs a bond of its own N-H, or the next residue's, and there
// are two of each, which may take part in two patterns.
constexpr unsigned BRIDGES_MAX = 8;
constexpr unsigned NO_BRIDGE = ~0u;

// The bridges of one residue in the order of their partners: twice the partner in the batch, plus
// one where the strands are antiparallel; NO_BRIDGE after the last.
struct alignas(16) Bridges { unsigned of[BRIDGES_MAX]; };
static_assert(sizeof(Bridges) == 32, "two 16-byte loads");

__device__ inline unsigned bridge_to(unsigned partner, bool antiparallel)
{
    return 2 * partner + antiparallel;
}

// What a residue is of the ladders, by bits.
constexpr unsigned IN_BRIDGE = 1, IN_STRAND = 2;
