#include "layout.cuh"

constexpr unsigned ORDER_THREADS = 128;

// The mean difference over all contacts, over the number of residues; one block a
// chain or a structure, as `axis` says.
extern "C" __global__ void __launch_bounds__(ORDER_THREADS)
relative_contact_order(const unsigned* header, const Structure* structures,
                       const Chain* chains, const unsigned* members,
                       const unsigned long long* sums, float* orders, unsigned axis)
{
    if (blockIdx.x >= header[axis])
        return;
    const bool of_chain = axis == CHAINS;
    const unsigned start = of_chain ? chains[blockIdx.x].member_start
                                    : structures[blockIdx.x].residue_start;
    const unsigned length = of_chain ? chains[blockIdx.x].count
                                     : structures[blockIdx.x].residue_count;
    __shared__ unsigned long long shared[ORDER_THREADS];
    unsigned long long sum = 0, count = 0;
    for (unsigned i = threadIdx.x; i < length; i += ORDER_THREADS) {
        const unsigned residue = of_chain ? members[start + i] : start + i;
        sum += sums[2 * residue];
        count += sums[2 * residue + 1];
    }
    sum = block_sum<ORDER_THREADS>(shared, sum);
    count = block_sum<ORDER_THREADS>(shared, count);
    if (threadIdx.x == 0)
        orders[blockIdx.x] = count > 0 ? float(double(sum) / double(count) / double(length))
                                       : null_real();
}
