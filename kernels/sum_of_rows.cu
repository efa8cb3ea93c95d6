#include "rows.cuh"
#include "work.cuh"

// Computes the sum or the mean of the residues that have a value; one block per chain or per
// structure, by `axis`. values[] is [residues, stride]; only the first value of a residue is used.
KERNEL(BLOCK)
sum_of_rows(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
            const unsigned* members, const float* values, float* sums, unsigned axis,
            unsigned stride, unsigned mean)
{
    wait_for_dependencies();
    __shared__ double shared[BLOCK];
    each_block(header, axis, [&](unsigned unit) {
        const Rows rows(structures, chains, members, axis, unit);
        double sum = 0.0, count = 0.0;
        for (unsigned k = threadIdx.x; k < rows.count; k += BLOCK) {
            const float value = values[size_t(stride) * rows[k]];
            if (!isnan(value)) {
                sum += double(value);
                count += 1.0;
            }
        }
        sum = block_sum(shared, sum);
        count = block_sum(shared, count);
        if (threadIdx.x == 0)
            sums[unit] = count > 0.0 ? float(mean ? sum / count : sum) : null_real();
    });
}
