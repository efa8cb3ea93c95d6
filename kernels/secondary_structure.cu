#include "angles.cuh"
#include "dssp.cuh"
#include "work.cuh"

// A residue's state depends on residues at most this far away in the sequence.
constexpr unsigned HALO = 10;

// Bits for the properties of a residue.
enum Known { COMPLETE, IS_JOINED, BOND_3, BOND_4, BOND_5, STRAND, BRIDGE, BEND, POLYPROLINE };

// States in the order of the columns' texts.
enum State { HELIX_4, LADDER, SINGLE_BRIDGE, HELIX_3, HELIX_5, TURN, BENT, HELIX_PP, LOOP };
enum Class { HELIX, SHEET, COIL };

struct Neighbourhood {
    const Backbone* backbone;
    const float4* hydrogens;
    unsigned end;

    __device__ inline bool is_joined(unsigned at) const { return joined(hydrogens, end, at); }

    // Whether the chain turns by more than 70 degrees from C-alphas i-2 and i to i and i+2.
    // C-alphas in one place are a turn of 90 degrees, as in DSSP.
    __device__ inline bool is_bend(unsigned at) const
    {
        constexpr double COS_70 = 0.3420201433256687;
        if (!is_joined(at) || !is_joined(at - 1) || !is_joined(at + 1) || !is_joined(at + 2))
            return false;
        const Position here = backbone[at].ca;
        const Vector in = difference(here, backbone[at - 2].ca);
        const Vector out = difference(backbone[at + 2].ca, here);
        const double lengths = sqrt(dot(in, in) * dot(out, out));
        return dot(in, out) < COS_70 * lengths || lengths == 0.0;
    }

    // Whether phi is within 29 degrees of -75, and psi within 29 degrees of 145.
    __device__ inline bool is_polyproline(unsigned at) const
    {
        if (!is_joined(at) || !is_joined(at + 1))
            return false;
        const Backbone& here = backbone[at];
        const Angle phi = Angle::dihedral(backbone[at - 1].c, here.n, here.ca, here.c);
        const Angle psi = Angle::dihedral(here.n, here.ca, here.c, backbone[at + 1].n);
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

// The bits of a mask, and the `length` - 1 bits after each.
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
__device__ inline State state_of(const unsigned (&known)[POLYPROLINE + 1])
{
    // Residues where a turn of `stride` residues begins: they accept a bond from the residue
    // `stride` after them.
    const auto starts = [&](unsigned bonds, unsigned stride) {
        return bonds >> stride & all_set(known[IS_JOINED] >> 1, stride);
    };
    const unsigned start3 = starts(known[BOND_3], 3);
    const unsigned start4 = starts(known[BOND_4], 4);
    const unsigned start5 = starts(known[BOND_5], 5);
    // Two consecutive turns make a helix of the residues that they share.
    const unsigned helix4 = spread(start4 & start4 << 1, 4);
    const unsigned sheet = (known[STRAND] | known[BRIDGE]) & ~helix4;
    const unsigned helix3 = spread(start3 & start3 << 1 & all_set(~(helix4 | sheet), 3), 3);
    const unsigned helix5 = spread(start5 & start5 << 1 & all_set(~(helix3 | sheet), 5), 5);
    const unsigned turn = spread(start3 << 1, 2) | spread(start4 << 1, 3) | spread(start5 << 1, 4);
    const unsigned polyproline = spread(all_set(known[POLYPROLINE], 3), 3);
    const auto own = [](unsigned mask) { return mask >> HALO & 1u; };
    return own(helix5) ? HELIX_5
        : own(helix4) ? HELIX_4
        : own(known[STRAND]) ? LADDER
        : own(known[BRIDGE]) ? SINGLE_BRIDGE
        : own(helix3) ? HELIX_3
        : own(turn) ? TURN
        : own(known[BEND]) ? BENT
        : own(polyproline) ? HELIX_PP : LOOP;
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
    const Units all = units(header, RESIDUES);
    const Neighbourhood around{backbone, hydrogens, all.end};
    const Bonds bonds{partners, energies};
    const auto known_of = [&](unsigned at) {
        const unsigned start = structures[residues[at].structure].residue_start;
        unsigned known = unsigned(hydrogens[at].w != INCOMPLETE) << COMPLETE
            | unsigned(around.is_joined(at)) << IS_JOINED;
        for (unsigned which = 0; which < 2; ++which) {
            const int acceptor = bonds.acceptor(at, which, start);
            const unsigned stride = at - unsigned(acceptor);
            if (acceptor >= 0 && stride >= 3 && stride <= 5)
                known |= 1u << (BOND_3 + stride - 3);
        }
        known |= (marks[at] & IN_STRAND ? 1u : 0u) << STRAND;
        known |= (marks[at] & IN_BRIDGE ? 1u : 0u) << BRIDGE;
        known |= unsigned(around.is_bend(at)) << BEND;
        if (has_polyproline)
            known |= unsigned(around.is_polyproline(at)) << POLYPROLINE;
        return known;
    };
    __shared__ unsigned window[HALO + BLOCK + HALO];
    each_tile(header, RESIDUES, [&](unsigned first) {
        for (unsigned k = threadIdx.x; k < HALO + BLOCK + HALO; k += BLOCK) {
            const unsigned at = first + k - HALO;
            window[k] = first + k >= all.begin + HALO && at < all.end ? known_of(at) : 0;
        }
        __syncthreads();
        const unsigned own = first + threadIdx.x;
        if (own >= all.end)
            return;
        unsigned known[POLYPROLINE + 1] = {};
        for (unsigned k = 0; k <= 2 * HALO; ++k)
            for (unsigned bit = 0; bit <= POLYPROLINE; ++bit)
                known[bit] |= (window[threadIdx.x + k] >> bit & 1u) << k;
        const bool complete = known[COMPLETE] >> HALO & 1u;
        const State state = state_of(known);
        states[2 * own] = complete ? int(state) : NULL_COUNT;
        states[2 * own + 1] = complete ? int(class_of(state)) : NULL_COUNT;
    });
}
