#include "rows.cuh"

// The sum of the rows that have a value, the first of `stride` a row, or their
// mean; one block a chain or a structure, as `axis` says.
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
sum_of_rows(const unsigned* header, const Structure* structures, const Chain* chains,
            const unsigned* members, const float* values, float* sums, unsigned axis,
            unsigned stride, unsigned mean)
{
    if (blockIdx.x >= header[axis])
        return;
    const Rows rows(structures, chains, members, axis);
    __shared__ double shared[ROW_THREADS];
    double sum = 0.0, count = 0.0;
    for (unsigned k = threadIdx.x; k < rows.count; k += ROW_THREADS) {
        const float value = values[size_t(stride) * rows[k]];
        if (!isnan(value)) {
            sum += double(value);
            count += 1.0;
        }
    }
    sum = block_sum<ROW_THREADS>(shared, sum);
    count = block_sum<ROW_THREADS>(shared, count);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = count > 0.0 ? float(mean ? sum / count : sum) : null_real();
}
