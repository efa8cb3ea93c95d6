#include "rows.cuh"
#include "work.cuh"

// Computes the fractions of helix, strand and coil among the residues that have a secondary
// structure, one block per chain or per structure, by `axis`. The class is the second of a
// residue's two states.
KERNEL(BLOCK)
class_fractions(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
                const unsigned* members, const int* states, float* fractions, unsigned axis)
{
    wait_for_dependencies();
    __shared__ unsigned shared[BLOCK];
    each_block(header, axis, [&](unsigned unit) {
        const Rows rows(structures, chains, members, axis, unit);
        unsigned counts[3] = {};
        for (unsigned k = threadIdx.x; k < rows.count; k += BLOCK) {
            const int state = states[2 * rows[k] + 1];
            for (int class_index = 0; class_index < 3; ++class_index)
                counts[class_index] += state == class_index;
        }
        for (int class_index = 0; class_index < 3; ++class_index)
            counts[class_index] = block_sum(shared, counts[class_index]);
        const unsigned all = counts[0] + counts[1] + counts[2];
        if (threadIdx.x < 3) {
            const unsigned class_count = threadIdx.x == 0 ? counts[0]
                : threadIdx.x == 1                        ? counts[1]
                                                          : counts[2];
            fractions[3 * unit + threadIdx.x] =
                all > 0 ? float(double(class_count) / double(all)) : null_real();
        }
    });
}
