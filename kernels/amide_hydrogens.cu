#include "dssp.cuh"

// The hydrogen of each residue's N, one thread a residue: its offset from N, 1 A
// along the C=O of the residue before, backwards, in 0.001 A; then what the residue
// can do. Proline has none, nor has a residue that is not linked to one with C and O.
// A residue that lacks a backbone atom takes no part.
extern "C" __global__ void amide_hydrogens(const unsigned* header, const Residue* residues,
                                           const Backbone* backbone, float4* hydrogens)
{
    const unsigned own = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned count = header[RESIDUES];
    if (own >= count)
        return;
    const Residue residue = residues[own];
    const Backbone here = backbone[own];
    float4 hydrogen = {0.0f, 0.0f, 0.0f, NO_BACKBONE};
    if (residue.flags & PRESENT && present(here.n) && present(here.ca) && present(here.c)
        && present(here.o)) {
        hydrogen.w = ACCEPTOR;
        if (residue.aa != 'P' && linked(residues, count, own)) {
            const Position c = backbone[own - 1].c, o = backbone[own - 1].o;
            const float x = float(c.x - o.x), y = float(c.y - o.y), z = float(c.z - o.z);
            const float d2 = x * x + y * y + z * z;
            if (present(c) && present(o) && d2 > 0.0f) {
                const float scale = 1000.0f / sqrtf(d2);
                hydrogen = {x * scale, y * scale, z * scale, DONOR_AND_ACCEPTOR};
            }
        }
    }
    hydrogens[own] = hydrogen;
}
