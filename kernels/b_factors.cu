#include "work.cuh"

// The mean of a residue's atoms that have a value.
__device__ inline float mean_of_atoms(const ResidueSpan& residue, const float* atom_b)
{
    double sum = 0.0, count = 0.0;
    for (unsigned k = 0; k < residue.atom_count; ++k) {
        const float value = atom_b[residue.atom_start + k];
        if (!isnan(value)) {
            sum += double(value);
            count += 1.0;
        }
    }
    return count > 0.0 ? float(sum / count) : null_real();
}

// Computes for each residue the B factor of its C-alpha, the mean over its atoms, and the C-alpha's
// z-score in the chain, (b - mean) / population standard deviation; one block per chain. All are
// null in predicted models.
KERNEL(BLOCK)
b_factors(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
          const ChainSpan* chains, const unsigned* members, const float* b, const float* atom_b,
          float* factors)
{
    wait_for_dependencies();
    __shared__ double shared[BLOCK];
    each_block(header, CHAINS, [&](unsigned chain_index) {
        const ChainSpan chain = chains[chain_index];
        const unsigned* residues_of_chain = members + chain.member_start;
        const bool is_measured = !structures[chain.structure].predicted;

        double sum = 0.0, count = 0.0;
        for (unsigned m = threadIdx.x; m < chain.count; m += BLOCK) {
            const float value = b[residues_of_chain[m]];
            if (!isnan(value)) {
                sum += double(value);
                count += 1.0;
            }
        }
        sum = block_sum(shared, sum);
        count = block_sum(shared, count);
        const double mean = sum / count;

        double squares = 0.0;
        for (unsigned m = threadIdx.x; m < chain.count; m += BLOCK) {
            const float value = b[residues_of_chain[m]];
            const double deviation = double(value) - mean;
            if (!isnan(value))
                squares += deviation * deviation;
        }
        const double sd = sqrt(block_sum(shared, squares) / count);

        for (unsigned m = threadIdx.x; m < chain.count; m += BLOCK) {
            const unsigned residue = residues_of_chain[m];
            const float value = is_measured ? b[residue] : null_real();
            const bool has_score = sd > 0.0 && !isnan(value);
            factors[3 * residue] = value;
            factors[3 * residue + 1] =
                is_measured ? mean_of_atoms(residues[residue], atom_b) : null_real();
            factors[3 * residue + 2] = has_score ? float((double(value) - mean) / sd) : null_real();
        }
    });
}
