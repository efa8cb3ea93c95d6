// Relative areas, which rsa.cu and rsa_scale.cu share.
#pragma once
#include "work.cuh"

constexpr int RSA_WINDOW = 25;

// Computes areas relative to their maximum, and their means over a window along the chain, which is
// reflected at its ends; one block per chain. max_of(letter) is the largest area of a residue in
// A^2, by its one-letter code from A on, 0 for a letter that is no residue. areas[] is [residues,
// 3]; only the first value of a residue is used.
template <typename MaxOf>
__device__ inline void relative_areas(const unsigned* header, const ResidueSpan* residues,
                                      const ChainSpan* chains, const unsigned* members,
                                      const float* areas, float* relative, MaxOf max_of)
{
    each_block(header, CHAINS, [&](unsigned chain_index) {
        const ChainSpan chain = chains[chain_index];
        const unsigned* residues_of_chain = members + chain.member_start;
        for (unsigned m = threadIdx.x; m < chain.count; m += BLOCK) {
            const ResidueSpan residue = residues[residues_of_chain[m]];
            const unsigned letter = residue.aa - 'A';
            const float max = letter < 26 && residue.flags & STANDARD ? max_of(letter) : 0.0f;
            const float area = areas[3 * residues_of_chain[m]];
            relative[2 * residues_of_chain[m]] = max > 0.0f && !isnan(area) ? area / max : null_real();
        }
        __syncthreads();
        const int last = int(chain.count) - 1, period = max(2 * last, 1);
        for (unsigned m = threadIdx.x; m < chain.count; m += BLOCK) {
            double sum = 0.0, count = 0.0;
            const int first = int(m) - RSA_WINDOW / 2;
            for (int position = first; position <= int(m) + RSA_WINDOW / 2; ++position) {
                const int place = (position % period + period) % period;
                const float value = relative[2 * residues_of_chain[min(place, 2 * last - place)]];
                if (!isnan(value)) {
                    sum += double(value);
                    count += 1.0;
                }
            }
            relative[2 * residues_of_chain[m] + 1] = count > 0.0 ? float(sum / count) : null_real();
        }
    });
}
