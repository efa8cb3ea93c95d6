#include "rows.cuh"
#include "work.cuh"

// Computes the fractions of helix, strand and coil among the residues that have a secondary
// structure, one block per chain or per structure, by `axis`. The class is the second of a
// residue's two states.
KERNEL(BLOCK)
class_fractions(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
                const unsigned* members, const int* states, float* fractions, unsigned axis)
{
    __shared__ unsigned shared[BLOCK];
    each_block(header, axis, [&](unsigned own) {
        const Rows rows(structures, chains, members, axis, own);
        unsigned counts[3] = {};
        for (unsigned k = threadIdx.x; k < rows.count; k += BLOCK) {
            const int state = states[2 * rows[k] + 1];
            for (int of = 0; of < 3; ++of)
                counts[of] += state == of;
        }
        for (int of = 0; of < 3; ++of)
            counts[of] = block_sum(shared, counts[of]);
        const unsigned all = counts[0] + counts[1] + counts[2];
        if (threadIdx.x < 3) {
            const unsigned of = threadIdx.x == 0 ? counts[0]
                : threadIdx.x == 1              ? counts[1]
                                                : counts[2];
            fractions[3 * own + threadIdx.x] =
                all > 0 ? float(double(of) / double(all)) : null_real();
        }
    });
}
