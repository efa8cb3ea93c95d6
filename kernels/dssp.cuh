// Hydrogen bonds and bridges. The kernels of secondary structure pass them on in buffers.
#pragma once
#include "layout.cuh"

// The state of a residue, in the last element of its hydrogen: a backbone atom is missing; the
// first of a stretch of linked, complete residues; bonded to the residue before it; also with an
// amide hydrogen. A state implies those before it, except for the first state.
constexpr float INCOMPLETE = 0.0f, FIRST = 1.0f, JOINED = 2.0f, DONOR = 3.0f;

// Whether a residue, of a structure that ends at `end`, is bonded to the one before it.
__device__ inline bool joined(const float4* hydrogens, unsigned end, unsigned residue)
{
    return residue < end && hydrogens[residue].w >= JOINED;
}

// C-alphas of bonded residues are closer than this, in 0.001 A.
constexpr int BOND_REACH = 9000;
// The least energy, which is also that of atoms closer than 0.5 A, in cal/mol.
constexpr int ENERGY_MIN = -9900;

// Energy of a hydrogen bond in cal/mol, rounded half away from zero where it is negative: 27.888
// kcal/mol A (1/ON + 1/CH - 1/OH - 1/CN) (Kabsch and Sander 1983).
__device__ inline int bond_energy(Position n, float4 hydrogen, Position c, Position o)
{
    constexpr float COUPLING = -27888000.0f;
    const float ox = float(n.x - o.x), oy = float(n.y - o.y), oz = float(n.z - o.z);
    const float cx = float(n.x - c.x), cy = float(n.y - c.y), cz = float(n.z - c.z);
    const float hox = ox + hydrogen.x, hoy = oy + hydrogen.y, hoz = oz + hydrogen.z;
    const float hcx = cx + hydrogen.x, hcy = cy + hydrogen.y, hcz = cz + hydrogen.z;
    const float no = ox * ox + oy * oy + oz * oz;
    const float nc = cx * cx + cy * cy + cz * cz;
    const float ho = hox * hox + hoy * hoy + hoz * hoz;
    const float hc = hcx * hcx + hcy * hcy + hcz * hcz;
    if (fminf(fminf(no, nc), fminf(ho, hc)) < 500.0f * 500.0f)
        return ENERGY_MIN;
    const float energy = COUPLING / sqrtf(ho) - COUPLING / sqrtf(hc) + COUPLING / sqrtf(nc)
                         - COUPLING / sqrtf(no);
    return max(int(energy - 0.5f), ENERGY_MIN);
}

// The hydrogen bonds of the batch. A residue has four partners: the two best acceptors of its N-H,
// then the two best donors to its O. Partners are indices in the structure; energies are in
// kcal/mol.
struct Bonds {
    const int* partners;
    const float* energies;

    // Acceptor 0 or 1 of a residue, as an index in the batch; -1 without a bond, which has less than
    // -0.5 kcal/mol. The structure starts at residue `first`.
    __device__ inline int acceptor(unsigned donor, unsigned which, unsigned first) const
    {
        return energies[4 * donor + which] < -0.5f ? int(first) + partners[4 * donor + which] : -1;
    }

    // Whether the N-H of residue `donor` is bonded to the O of residue `to`.
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
struct alignas(16) Bridges { unsigned codes[BRIDGES_MAX]; };
static_assert(sizeof(Bridges) == 32, "two 16-byte loads");

__device__ inline unsigned bridge_to(unsigned partner, bool antiparallel)
{
    return 2 * partner + antiparallel;
}

// Bits of a residue's marks: it is part of a ladder of one bridge, or of more.
constexpr unsigned IN_BRIDGE = 1, IN_STRAND = 2;
