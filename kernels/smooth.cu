#include "cells.cuh"
#include "work.cuh"

// A sum of weights counts in units of 2^-WEIGHT_BITS.
constexpr int WEIGHT_BITS = 42;

// The mean of a channel over the C-alphas within the radius of a residue's, itself
// not among them, weighted by 1/d on request; one warp a residue. Sums are whole
// numbers, so that their order does not matter: `scales` has for each structure
// the power of two that makes its largest value less than 2^42.
KERNEL(32 * WARPS)
smooth(const unsigned* header, const Structure* structures, const Residue* residues,
       const Atom* atoms, CELL_PARAMS, const float* values, const double* scales, float* means,
       unsigned radius, unsigned weighted)
{
    each_warp(header, RESIDUES, [&](unsigned own) {
        const Atom atom = atoms[own];
        if (!present(atom)) {
            if (threadIdx.x % 32 == 0)
                means[own] = null_real();
            return;
        }
        const unsigned structure = residues[own].structure;
        const Grid& grid = structures[structure].residue_grid;
        const double scale = scales[structure];
        const double weight_scale = double(1ull << WEIGHT_BITS);
        const Cells cells = CELLS_OF_PARAMS;
        long long sum = 0, weights = 0;
        for_each_candidate(cells, grid, atom, radius, [&](unsigned other) {
            const unsigned d2 = squared(cells.x[other] - atom.x, cells.y[other] - atom.y,
                                        cells.z[other] - atom.z);
            const unsigned source = cells.source[other];
            if (d2 >= radius * radius || source == own || isnan(values[source]))
                return;
            const double value = double(values[source]) * scale;
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
            means[own] = weights > 0 ? float(double(sum) / scale / divisor) : null_real();
        }
    });
}
