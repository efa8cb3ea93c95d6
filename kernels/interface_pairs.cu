#include "interfaces.cuh"

// Counts for each chain the later chains that it is in contact with, one block per chain. `rooms`,
// `ends`, `partners` and `contacts` are those of interface_partners.
KERNEL(BLOCK)
interface_pairs(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
                const unsigned* members, const unsigned* rooms, const int* ends,
                const unsigned* partners, const unsigned* contacts, int* degrees)
{
    wait_for_dependencies();
    __shared__ int warp_values[BLOCK / 32];
    each_block(header, CHAINS, [&](unsigned chain_index) {
        const ChainSpan chain = chains[chain_index];
        const StructureSpan& structure = structures[chain.structure];
        int count = 0;
        if (chain.count > 0 && structure.chain_count > 1) {
            const ChainPartners all{structure, members, rooms + 2 * chain.structure,
                                    ends,      partners, contacts};
            int last = int(chain_index);
            while ((last = all.next(chain, last, warp_values)) >= 0)
                ++count;
        }
        if (threadIdx.x == 0)
            degrees[chain_index] = count;
    });
}
