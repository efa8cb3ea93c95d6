#include "interfaces.cuh"

// Writes a row for each pair of chains in contact, one block per earlier chain: the indices of the
// two chains in the structure; the residues of each side in contact, and the pairs of them; the
// area that both sides bury together, and that of each side, in A^2; and 0 hydrogen bonds, which
// interface_bonds counts. `rooms`, `ends`, `partners` and `contacts` are those of
// interface_partners, `buried` that of interface_areas. A chain's rows end at row_ends[].
KERNEL(BLOCK)
interface_rows(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
               const unsigned* members, const unsigned* rooms, const int* ends,
               const unsigned* partners, const unsigned* contacts, const unsigned long long* buried,
               const int* row_ends, int* pairs, int* counts, float* areas, int* bonds,
               unsigned points)
{
    wait_for_dependencies();
    enum { RESIDUES_I, RESIDUES_J, CONTACTS, BURIED_I, BURIED_J, SUMS };
    __shared__ int warp_values[BLOCK / 32];
    __shared__ unsigned long long sums[SUMS];
    each_block(header, CHAINS, [&](unsigned chain_index) {
        const ChainSpan chain = chains[chain_index];
        const StructureSpan& structure = structures[chain.structure];
        if (chain.count == 0 || structure.chain_count < 2)
            return;
        const unsigned* room = rooms + 2 * chain.structure;
        const Entries rows = interfaces_of(structure, row_ends, chain_index, room);
        const ChainPartners all{structure, members, room, ends, partners, contacts};
        int last = int(chain_index);
        for (unsigned row = rows.begin; row < rows.end; ++row) {
            last = all.next(chain, last, warp_values);
            if (threadIdx.x < SUMS)
                sums[threadIdx.x] = 0;
            __syncthreads();
            unsigned long long found[SUMS] = {};
            all.each(chain, [&](unsigned place) {
                if (int(partners[place]) != last)
                    return;
                found[RESIDUES_I] += contacts[place] > 0;
                found[CONTACTS] += contacts[place];
                found[BURIED_I] += buried[place];
            });
            all.each(chains[last], [&](unsigned place) {
                if (partners[place] != chain_index)
                    return;
                found[RESIDUES_J] += contacts[place] > 0;
                found[BURIED_J] += buried[place];
            });
            for (unsigned k = 0; k < SUMS; ++k) {
                const unsigned long long sum = warp_sum(found[k]);
                if (lane() == 0 && sum > 0)
                    atomicAdd(&sums[k], sum);
            }
            __syncthreads();
            if (threadIdx.x == 0) {
                const double scale = 4e-6 * 3.141592653589793 / double(points);
                pairs[2 * row] = int(chain_index - structure.chain_start);
                pairs[2 * row + 1] = last - int(structure.chain_start);
                for (unsigned k = RESIDUES_I; k <= CONTACTS; ++k)
                    counts[3 * row + k] = int(sums[k]);
                areas[3 * row] = float(double(sums[BURIED_I] + sums[BURIED_J]) * scale);
                areas[3 * row + 1] = float(double(sums[BURIED_I]) * scale);
                areas[3 * row + 2] = float(double(sums[BURIED_J]) * scale);
                bonds[row] = 0;
            }
        }
    });
}
