#include "forest.cuh"
#include "work.cuh"

// The number of threads of the block before this one that set their flag. `total` is the number in
// the whole block.
__device__ inline unsigned flags_before(unsigned* shared, bool flag, unsigned& total)
{
    const unsigned warp = threadIdx.x / 32;
    const unsigned flags = __ballot_sync(~0u, flag);
    __syncthreads();
    if (lane() == 0)
        shared[warp] = __popc(flags);
    __syncthreads();
    unsigned earlier = before(flags);
    total = 0;
    for (unsigned w = 0; w < BLOCK / 32; ++w) {
        earlier += w < warp ? shared[w] : 0;
        total += shared[w];
    }
    return earlier;
}

// Numbers the trees of each structure in the order of their roots, and counts those of each
// structure and of each chain, one block per structure. stamps[] starts zeroed.
KERNEL(BLOCK)
cluster_number(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
               const unsigned* members, const unsigned* parents, unsigned* numbers,
               unsigned* stamps /* updated */, int* clusters, int* in_chains, int* in_structures)
{
    wait_for_dependencies();
    __shared__ unsigned shared[BLOCK];
    each_block(header, STRUCTURES, [&](unsigned structure_index) {
        const StructureSpan& structure = structures[structure_index];
        const unsigned start = structure.residue_start, end = start + structure.residue_count;
        unsigned count = 0;
        for (unsigned base = start; base < end; base += BLOCK) {
            const unsigned residue = base + threadIdx.x;
            const bool is_root = residue < end && parents[residue] == residue;
            unsigned total;
            const unsigned before = flags_before(shared, is_root, total);
            if (is_root)
                numbers[residue] = count + before;
            count += total;
        }
        __syncthreads();
        for (unsigned residue = start + threadIdx.x; residue < end; residue += BLOCK)
            clusters[residue] = parents[residue] == NO_TREE ? NULL_COUNT
                                                    : int(numbers[root_of(parents, residue)]);
        if (threadIdx.x == 0)
            in_structures[structure_index] = count;

        // A chain counts a tree once: the first thread stamps its root.
        for (unsigned c = structure.chain_start; c < structure.chain_start + structure.chain_count;
             ++c) {
            const ChainSpan chain = chains[c];
            unsigned new_trees = 0;
            for (unsigned m = threadIdx.x; m < chain.count; m += BLOCK) {
                const unsigned residue = members[chain.member_start + m];
                if (parents[residue] != NO_TREE)
                    new_trees += atomicExch(&stamps[root_of(parents, residue)], c + 1) != c + 1;
            }
            new_trees = block_sum(shared, new_trees);
            if (threadIdx.x == 0)
                in_chains[c] = new_trees;
        }
    });
}
