#include "angles.cuh"
#include "dssp.cuh"
#include "work.cuh"

// A residue's state depends on residues at most this far away in the sequence.
constexpr unsigned HALO = 10;

// Bits for the properties of a residue.
enum ResidueBit { COMPLETE, IS_JOINED, BOND_3, BOND_4, BOND_5, STRAND, BRIDGE, BEND, POLYPROLINE };

// States in the order of the columns' texts.
enum State { HELIX_4, LADDER, SINGLE_BRIDGE, HELIX_3, HELIX_5, TURN, BENT, HELIX_PP, LOOP };
enum Class { HELIX, SHEET, COIL };

struct Neighbourhood {
    const Backbone* backbone;
    const float4* hydrogens;
    unsigned end;

    __device__ inline bool is_joined(unsigned residue) const { return joined(hydrogens, end, residue); }

    // Whether the chain turns by more than 70 degrees from C-alphas i-2 and i to i and i+2. Two
    // C-alphas at the same position count as a turn of 90 degrees, as in DSSP.
    __device__ inline bool is_bend(unsigned residue) const
    {
        constexpr double COS_70 = 0.3420201433256687;
        if (!is_joined(residue) || !is_joined(residue - 1) || !is_joined(residue + 1)
            || !is_joined(residue + 2))
            return false;
        const Position here = backbone[residue].ca;
        const Vector in = difference(here, backbone[residue - 2].ca);
        const Vector out = difference(backbone[residue + 2].ca, here);
        const double lengths = sqrt(dot(in, in) * dot(out, out));
        return dot(in, out) < COS_70 * lengths || lengths == 0.0;
    }

    // Whether phi is within 29 degrees of -75, and psi within 29 degrees of 145.
    __device__ inline bool is_polyproline(unsigned residue) const
    {
        if (!is_joined(residue) || !is_joined(residue + 1))
            return false;
        const Backbone& here = backbone[residue];
        const Angle phi = Angle::dihedral(backbone[residue - 1].c, here.n, here.ca, here.c);
        const Angle psi = Angle::dihedral(here.n, here.ca, here.c, backbone[residue + 1].n);
        return is_within(phi, 0.25881904510252074, -0.9659258262890683)
            && is_within(psi, -0.8191520442889918, 0.573576436351046);
    }

    // Whether an angle is within 29 degrees of another, given as cosine and sine.
    __device__ static inline bool is_within(Angle angle, double cos, double sin)
    {
        constexpr double COS_29 = 0.8746197071393957;
        const double length = sqrt(angle.cos * angle.cos + angle.sin * angle.sin);
        return length > 0.0 && angle.cos * cos + angle.sin * sin >= COS_29 * length;
    }
};

// The set bits of a mask, and the `length` - 1 bits after each of them.
__device__ inline unsigned spread(unsigned mask, unsigned length)
{
    unsigned all = mask;
    for (unsigned k = 1; k < length; ++k)
        all |= mask << k;
    return all;
}

// The bits of a mask that are followed by `length` - 1 set bits.
__device__ inline unsigned all_set(unsigned mask, unsigned length)
{
    unsigned all = mask;
    for (unsigned k = 1; k < length; ++k)
        all &= mask >> k;
    return all;
}

// The state of residue HALO. The masks cover the residues around it.
__device__ inline State state_of(const unsigned (&bits)[POLYPROLINE + 1])
{
    // Residues where a turn of `stride` residues begins: they accept a bond from the residue
    // `stride` after them.
    const auto turn_starts = [&](unsigned bonds, unsigned stride) {
        return bonds >> stride & all_set(bits[IS_JOINED] >> 1, stride);
    };
    const unsigned start3 = turn_starts(bits[BOND_3], 3);
    const unsigned start4 = turn_starts(bits[BOND_4], 4);
    const unsigned start5 = turn_starts(bits[BOND_5], 5);
    // Two consecutive turns make a helix of the residues that they share.
    const unsigned helix4 = spread(start4 & start4 << 1, 4);
    const unsigned sheet = (bits[STRAND] | bits[BRIDGE]) & ~helix4;
    const unsigned helix3 = spread(start3 & start3 << 1 & all_set(~(helix4 | sheet), 3), 3);
    const unsigned helix5 = spread(start5 & start5 << 1 & all_set(~(helix3 | sheet), 5), 5);
    const unsigned turn = spread(start3 << 1, 2) | spread(start4 << 1, 3) | spread(start5 << 1, 4);
    const unsigned polyproline = spread(all_set(bits[POLYPROLINE], 3), 3);
    const auto is_set = [](unsigned mask) { return mask >> HALO & 1u; };
    return is_set(helix5) ? HELIX_5
        : is_set(helix4) ? HELIX_4
        : is_set(bits[STRAND]) ? LADDER
        : is_set(bits[BRIDGE]) ? SINGLE_BRIDGE
        : is_set(helix3) ? HELIX_3
        : is_set(turn) ? TURN
        : is_set(bits[BEND]) ? BENT
        : is_set(polyproline) ? HELIX_PP : LOOP;
}

__device__ inline Class class_of(State state)
{
    return state == HELIX_4 || state == HELIX_3 || state == HELIX_5 ? HELIX
        : state == LADDER || state == SINGLE_BRIDGE ? SHEET : COIL;
}

// Assigns the secondary structure of each residue, in eight or nine states and in three classes;
// one thread per residue. Null if a backbone atom is missing.
KERNEL(BLOCK)
secondary_structure(const unsigned* header, const StructureSpan* structures,
                    const ResidueSpan* residues, const Backbone* backbone,
                    const float4* hydrogens, const int* partners, const float* energies,
                    const unsigned* marks, int* states, unsigned has_polyproline)
{
    wait_for_dependencies();
    const Units all = units(header, RESIDUES);
    const Neighbourhood around{backbone, hydrogens, all.end};
    const Bonds bonds{partners, energies};
    const auto bits_of = [&](unsigned residue) {
        const unsigned start = structures[residues[residue].structure].residue_start;
        unsigned bits = unsigned(hydrogens[residue].w != INCOMPLETE) << COMPLETE
            | unsigned(around.is_joined(residue)) << IS_JOINED;
        for (unsigned which = 0; which < 2; ++which) {
            const int acceptor = bonds.acceptor(residue, which, start);
            const unsigned stride = residue - unsigned(acceptor);
            if (acceptor >= 0 && stride >= 3 && stride <= 5)
                bits |= 1u << (BOND_3 + stride - 3);
        }
        bits |= (marks[residue] & IN_STRAND ? 1u : 0u) << STRAND;
        bits |= (marks[residue] & IN_BRIDGE ? 1u : 0u) << BRIDGE;
        bits |= unsigned(around.is_bend(residue)) << BEND;
        if (has_polyproline)
            bits |= unsigned(around.is_polyproline(residue)) << POLYPROLINE;
        return bits;
    };
    __shared__ unsigned window[HALO + BLOCK + HALO];
    each_tile(header, RESIDUES, [&](unsigned first) {
        for (unsigned k = threadIdx.x; k < HALO + BLOCK + HALO; k += BLOCK) {
            const unsigned residue = first + k - HALO;
            window[k] = first + k >= all.begin + HALO && residue < all.end ? bits_of(residue) : 0;
        }
        __syncthreads();
        const unsigned residue = first + threadIdx.x;
        if (residue >= all.end)
            return;
        unsigned bits[POLYPROLINE + 1] = {};
        for (unsigned k = 0; k <= 2 * HALO; ++k)
            for (unsigned bit = 0; bit <= POLYPROLINE; ++bit)
                bits[bit] |= (window[threadIdx.x + k] >> bit & 1u) << k;
        const bool complete = bits[COMPLETE] >> HALO & 1u;
        const State state = state_of(bits);
        states[2 * residue] = complete ? int(state) : NULL_COUNT;
        states[2 * residue + 1] = complete ? int(class_of(state)) : NULL_COUNT;
    });
}
