#include "dssp.cuh"
#include "work.cuh"

__device__ inline bool is_complete(const Backbone& backbone)
{
    return present(backbone.n) && present(backbone.ca) && present(backbone.c)
        && present(backbone.o);
}

// Computes the amide hydrogen of each residue, one thread per residue: its offset from N in 0.001
// A, which is 1 A from O to C of the residue before, and the state of the residue (dssp.cuh).
// Proline and the first residue of a stretch have no hydrogen. A residue that lacks a backbone atom
// ends a stretch.
KERNEL(256)
amide_hydrogens(const unsigned* header, const ResidueSpan* residues, const Backbone* backbone,
                float4* hydrogens)
{
    wait_for_dependencies();
    const unsigned count = header[RESIDUES];
    each_thread(header, RESIDUES, [&](unsigned row) {
        const ResidueSpan residue = residues[row];
        float4 hydrogen = {0.0f, 0.0f, 0.0f, INCOMPLETE};
        if (residue.flags & PRESENT && is_complete(backbone[row])) {
            hydrogen.w = FIRST;
            if (linked(residues, count, row) && is_complete(backbone[row - 1])) {
                hydrogen.w = JOINED;
                const Position c = backbone[row - 1].c, o = backbone[row - 1].o;
                const float x = float(c.x - o.x), y = float(c.y - o.y), z = float(c.z - o.z);
                const float d2 = x * x + y * y + z * z;
                if (residue.aa != 'P' && d2 > 0.0f) {
                    // The hydrogen is 1 A from N.
                    const float scale = 1000.0f / sqrtf(d2);
                    hydrogen = {x * scale, y * scale, z * scale, DONOR};
                }
            }
        }
        hydrogens[row] = hydrogen;
    });
}
