#include "rows.cuh"

// The mean of the rows that have a value; one block a chain or a structure, as
// `axis` says.
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
mean_of_rows(const unsigned* header, const Structure* structures, const Chain* chains,
             const unsigned* members, const float* values, float* means, unsigned axis)
{
    if (blockIdx.x >= header[axis])
        return;
    const Rows rows(structures, chains, members, axis);
    __shared__ double shared[ROW_THREADS];
    double sum = 0.0, count = 0.0;
    for (unsigned k = threadIdx.x; k < rows.count; k += ROW_THREADS) {
        const float value = values[rows[k]];
        if (!isnan(value)) {
            sum += double(value);
            count += 1.0;
        }
    }
    sum = block_sum<ROW_THREADS>(shared, sum);
    count = block_sum<ROW_THREADS>(shared, count);
    if (threadIdx.x == 0)
        means[blockIdx.x] = count > 0.0 ? float(sum / count) : null_real();
}
