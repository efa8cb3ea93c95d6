#include "gather.cuh"
#include "work.cuh"

// Weights, which are at most 1, are added in fixed point, in units of 2^-WEIGHT_BITS.
constexpr int WEIGHT_BITS = 42;

// The power of two that makes a value less than 2^WEIGHT_BITS.
__device__ inline double scale_of(float value)
{
    // Every float other than 0 is a normal double. Its exponent is in these bits, where 1023 means
    // 2^0.
    const long long exponent = __double_as_longlong(double(value)) >> 52;
    // 2^(WEIGHT_BITS - 1 - e) for a value from 2^e to below 2^(e + 1).
    const long long power = 1023 + WEIGHT_BITS - 1 + 1023 - exponent;
    return exponent == 0 ? 1.0 : __longlong_as_double(power << 52);
}

// Computes for each residue the mean of a channel over the other residues whose C-alphas are within
// the radius, of all chains or of the residue's chain, weighted by 1/d on request; one warp per
// residue. Sums are in fixed point, so that they do not depend on the order. Their scale depends
// only on the largest of the summed values.
KERNEL(32 * WARPS)
smooth(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
       const Atom* atoms, CELL_PARAMS, const float* values, float* means, unsigned radius,
       unsigned weighted, unsigned own_chain)
{
    wait_for_dependencies();
    each_warp(header, RESIDUES, [&](unsigned residue) {
        const Atom atom = atoms[residue];
        if (!present(atom)) {
            if (threadIdx.x % 32 == 0)
                means[residue] = null_real();
            return;
        }
        const Grid& grid = structures[residues[residue].structure].residue_grid;
        const Cells cells = CELLS_OF_PARAMS;
        uint2* places = warp_memory<Places, WARPS>().scratch;
        const auto for_each_near = [&](auto visit) {
            each_candidate(cells, grid, atom, radius, places, [&](bool has_atom, unsigned other) {
                if (!has_atom || (own_chain && !same_chain(cells.tag[other], atom.tag)))
                    return;
                const unsigned d2 = squared(cells.x[other] - atom.x, cells.y[other] - atom.y,
                                            cells.z[other] - atom.z);
                const unsigned source = cells.source[other];
                if (d2 < radius * radius && source != residue && !isnan(values[source]))
                    visit(values[source], d2);
            });
        };
        float largest = 0.0f;
        for_each_near([&](float value, unsigned) { largest = fmaxf(largest, fabsf(value)); });
        const double scale = scale_of(warp_max(largest));

        const double weight_scale = double(1ull << WEIGHT_BITS);
        long long sum = 0, weights = 0;
        for_each_near([&](float near, unsigned d2) {
            const double value = double(near) * scale;
            if (!weighted) {
                sum += __double2ll_rn(value);
                weights += 1;
            } else if (d2 > 0) {
                const double weight = 1.0 / sqrt(double(d2));
                sum += __double2ll_rn(value * weight);
                weights += __double2ll_rn(weight * weight_scale);
            }
        });
        sum = warp_sum(sum);
        weights = warp_sum(weights);
        if (threadIdx.x % 32 == 0) {
            const double divisor = weighted ? double(weights) / weight_scale : double(weights);
            means[residue] = weights > 0 ? float(double(sum) / scale / divisor) : null_real();
        }
    });
}
