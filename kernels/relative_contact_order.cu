#include "work.cuh"

// Computes the mean sequence separation over all contacts, divided by the number of residues; one
// block per chain or per structure, by `axis`.
KERNEL(BLOCK)
relative_contact_order(const unsigned* header, const StructureSpan* structures,
                       const ChainSpan* chains, const unsigned* members,
                       const unsigned long long* sums, float* orders, unsigned axis)
{
    wait_for_dependencies();
    __shared__ unsigned long long shared[BLOCK];
    each_block(header, axis, [&](unsigned unit) {
        const bool is_chain = axis == CHAINS;
        const unsigned start = is_chain ? chains[unit].member_start
                                        : structures[unit].residue_start;
        const unsigned length = is_chain ? chains[unit].count
                                         : structures[unit].residue_count;
        unsigned long long sum = 0, count = 0;
        for (unsigned i = threadIdx.x; i < length; i += BLOCK) {
            const unsigned residue = is_chain ? members[start + i] : start + i;
            sum += sums[2 * residue];
            count += sums[2 * residue + 1];
        }
        sum = block_sum(shared, sum);
        count = block_sum(shared, count);
        if (threadIdx.x == 0)
            orders[unit] = count > 0 ? float(double(sum) / double(count) / double(length))
                                           : null_real();
    });
}
