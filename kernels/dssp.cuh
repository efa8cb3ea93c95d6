// Hydrogen bonds and bridges, which the kernels of secondary structure pass on in buffers.
#pragma once
#include "layout.cuh"

// The state of a residue, in the last element of its hydrogen: a backbone atom is missing; the
// first of a stretch of linked, complete residues; bonded to the residue before it; also with an
// amide hydrogen. A state implies those before it, except for the first state.
constexpr float INCOMPLETE = 0.0f, FIRST = 1.0f, JOINED = 2.0f, DONOR = 3.0f;

// Whether residue `at`, of a structure that ends at `end`, is bonded to the one before it.
__device__ inline bool joined(const float4* hydrogens, unsigned end, unsigned at)
{
    return at < end && hydrogens[at].w >= JOINED;
}

// The hydrogen bonds of the batch. A residue has four partners: the two best acceptors of its N-H,
// then the two best donors to its O. Partners are indices in the structure; energies are in
// kcal/mol.
struct Bonds {
    const int* partners;
    const float* energies;

    // Acceptor 0 or 1 of a residue, as an index in the batch; -1 without a bond. The structure
    // starts at residue `first`.
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

// The largest number of bridges of a residue: each needs a bond of its own N-H or of the next
// residue's. Both have two bonds, and each bond may take part in two patterns.
constexpr unsigned BRIDGES_MAX = 8;
constexpr unsigned NO_BRIDGE = ~0u;

// The bridges of one residue, sorted by partner: twice the partner's index in the batch, plus one
// if the strands are antiparallel; NO_BRIDGE after the last.
struct alignas(16) Bridges { unsigned of[BRIDGES_MAX]; };
static_assert(sizeof(Bridges) == 32, "two 16-byte loads");

__device__ inline unsigned bridge_to(unsigned partner, bool antiparallel)
{
    return 2 * partner + antiparallel;
}

// Bits of a residue's marks.
constexpr unsigned IN_BRIDGE = 1, IN_STRAND = 2;
