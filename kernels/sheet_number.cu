#include "sheets.cuh"
#include "work.cuh"

// The number of ladders whose first bridge is one of the residue's.
__device__ inline unsigned ladders_from(const unsigned* keys, unsigned residue)
{
    unsigned count = 0;
    for (unsigned which = 0; which < BRIDGES_MAX; ++which)
        count += keys[BRIDGES_MAX * residue + which] == ladder_key(residue, which);
    return count;
}

// Numbers the sheets of each structure from 1 in the order of their first residues, and lists the
// ladders of each sheet in their order, sheet after sheet; one block per structure. sheets[] has
// for the root of each sheet its number, and where its ladders begin and end in listed[], which is
// [residues, BRIDGES_MAX / 2]: two residues share a bridge. counts[] starts zeroed.
KERNEL(BLOCK)
sheet_number(const unsigned* header, const StructureSpan* structures, const unsigned* keys,
             const unsigned* parents, unsigned* counts /* updated */, unsigned* sheets,
             unsigned* listed)
{
    wait_for_dependencies();
    __shared__ unsigned sums[2][BLOCK / 32], roots[BLOCK], ladders_begun[BLOCK];
    each_block(header, STRUCTURES, [&](unsigned structure_index) {
        const StructureSpan& structure = structures[structure_index];
        const unsigned start = structure.residue_start, end = start + structure.residue_count;
        for (unsigned residue = start + threadIdx.x; residue < end; residue += BLOCK)
            if (const unsigned count = ladders_from(keys, residue))
                atomicAdd(&counts[root_of(parents, residue)], count);
        __syncthreads();

        unsigned sheet_count = 0, ladder_count = 0;
        for (unsigned base = start; base < end; base += BLOCK) {
            const unsigned residue = base + threadIdx.x;
            const bool is_root = residue < end && parents[residue] == residue;
            // Atomics in L2 counted, so the read bypasses L1.
            const unsigned count = is_root ? __ldcg(&counts[residue]) : 0;
            const unsigned sheet = block_scan(sums[0], is_root, sheet_count);
            const unsigned first = block_scan(sums[1], count, ladder_count) - count;
            if (is_root) {
                unsigned* values = sheets + SHEET_VALUES * residue;
                values[SHEET_NUMBER] = sheet;
                values[LADDERS_BEGIN] = values[LADDERS_END] = first;
            }
            __syncthreads();
        }

        // The next ladder of a sheet goes where its ladders end.
        for (unsigned base = start; base < end; base += BLOCK) {
            const unsigned residue = base + threadIdx.x;
            const unsigned count = residue < end ? ladders_from(keys, residue) : 0;
            const unsigned root = count > 0 ? root_of(parents, residue) : NO_TREE;
            roots[threadIdx.x] = root;
            ladders_begun[threadIdx.x] = count;
            __syncthreads();
            unsigned place = 0, ladders_end = 0;
            if (count > 0) {
                place = ladders_end = sheets[SHEET_VALUES * root + LADDERS_END];
                for (unsigned thread = 0; thread < BLOCK; ++thread) {
                    const unsigned of_sheet = roots[thread] == root ? ladders_begun[thread] : 0;
                    place += thread < threadIdx.x ? of_sheet : 0;
                    ladders_end += of_sheet;
                }
            }
            __syncthreads();
            if (count > 0) {
                for (unsigned which = 0; which < BRIDGES_MAX; ++which) {
                    const unsigned key = ladder_key(residue, which);
                    if (keys[BRIDGES_MAX * residue + which] == key)
                        listed[BRIDGES_MAX / 2 * start + place++] = key;
                }
                sheets[SHEET_VALUES * root + LADDERS_END] = ladders_end;
            }
            __syncthreads();
        }
    });
}
