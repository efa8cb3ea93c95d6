#include "few.cuh"
#include "work.cuh"

// Computes for each residue the mean difference of positions over the contacts of its atoms with
// atoms of other residues of its chain, and their sum and number; one warp per residue.
KERNEL(32 * WARPS, 8)
contact_order(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
              const Atom* atoms, CELL_PARAMS, const unsigned* residue_of, const int* positions,
              float* means, unsigned long long* sums, unsigned radius)
{
    wait_for_dependencies();
    Around& around = warp_memory<Around, WARPS>();
    const Cells cells = CELLS_OF_PARAMS;
    each_warp(header, RESIDUES, [&](unsigned row) {
        const ResidueSpan residue = residues[row];
        const Grid& grid = structures[residue.structure].atom_grid;
        const int here = positions[row];
        unsigned long long sum = 0, count = 0;
        const auto want = [&](unsigned sorted) {
            if (tag_chain(cells.tag[sorted]) != residue.chain)
                return false;
            const unsigned number = residue_of[cells.source[sorted]];
            return number != 0 && number != row + 1;
        };
        const auto apart = [&](unsigned sorted) {
            return unsigned(abs(positions[residue_of[cells.source[sorted]] - 1] - here));
        };
        const auto visit = [&](const Few& few, float4 candidate, unsigned difference) {
            int near = 0;
            few.each(candidate, radius, [&](unsigned, int add) { near += add; });
            sum += (unsigned long long)(difference) * unsigned(near);
            count += near;
        };
        each_few(around, cells, grid, residue, atoms, radius, want, apart, [] {}, visit,
                 [](unsigned) {});
        sum = warp_sum(sum);
        count = warp_sum(count);
        if (lane() == 0) {
            sums[2 * row] = sum;
            sums[2 * row + 1] = count;
            means[row] = count > 0 ? float(double(sum) / double(count)) : null_real();
        }
    });
}
