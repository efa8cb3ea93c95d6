#include "angles.cuh"
#include "work.cuh"

// The bin of an angle in degrees (Lovell et al. 2000): p around 60, t around 180, m around -60, each
// of 120 degrees.
__device__ inline int rotamer_bin(float angle)
{
    enum { P, T, M };
    if (!(angle >= -180.0f))
        return NULL_COUNT;
    if (angle >= 0.0f && angle < 120.0f)
        return P;
    return angle >= -120.0f && angle < 0.0f ? M : T;
}

// Computes chi1 to chi5 in degrees, the bins of chi1 to chi4, which chi is symmetric, and how many
// atoms of the side chain are missing; one thread per residue. A chi is null if one of its atoms is
// missing.
KERNEL(256)
side_chains(const unsigned* header, const Backbone* backbone, const SideChain* sides,
            float* angles, int* counts)
{
    wait_for_dependencies();
    each_thread(header, RESIDUES, [&](unsigned residue) {
        const Backbone here = backbone[residue];
        const SideChain& side = sides[residue];
        Position a = here.n, b = here.ca, c = side.beta;
        for (unsigned chi = 0; chi < 5; ++chi) {
            const Position d = side.chain[chi];
            float angle = null_real();
            if (present(a) && present(b) && present(c) && present(d))
                angle = Angle::dihedral(a, b, c, d).degrees();
            angles[5 * residue + chi] = angle;
            if (chi < 4)
                counts[6 * residue + chi] = side.bins >> chi & 1 ? rotamer_bin(angle) : NULL_COUNT;
            a = b;
            b = c;
            c = d;
        }
        counts[6 * residue + 4] = side.symmetric;
        counts[6 * residue + 5] = side.missing;
    });
}
