#include "exposed.cuh"
#include "work.cuh"

// Finds where the exposed points of each atom start in the list, and their number; one block per
// structure. totals[] has the number of a structure's points. If they exceed its room, [structures,
// 2] with its first point and their number, its atoms have none.
KERNEL(BLOCK)
exposed_spans(const unsigned* header, const StructureSpan* structures, const Atom* atoms,
              const unsigned* bits, const unsigned* rooms, unsigned* starts, unsigned* counts,
              int* totals, unsigned words)
{
    __shared__ unsigned warp_sums[BLOCK / 32];
    each_block(header, STRUCTURES, [&](unsigned of_structure) {
        const StructureSpan& structure = structures[of_structure];
        const unsigned first = rooms[2 * of_structure], room = rooms[2 * of_structure + 1];
        const unsigned start = structure.atom_start, count = structure.atom_count;
        unsigned base = 0;
        // If 32 bits do not count the points, starts[] wrap around, and the atoms have no points.
        unsigned long long total = 0;
        for (unsigned step = 0; step < count; step += BLOCK) {
            const unsigned own = start + step + threadIdx.x;
            const bool is_one = step + threadIdx.x < count;
            unsigned points = 0;
            if (is_one && present(atoms[own]))
                for (unsigned word = 0; word < words; ++word)
                    points += __popc(bits[own * words + word]);
            const unsigned before = base;
            const unsigned sum = block_scan(warp_sums, points, base);
            total += base - before;
            if (is_one) {
                starts[own] = first + sum - points;
                counts[own] = points;
            }
            __syncthreads();
        }
        if (threadIdx.x == 0)
            totals[of_structure] = int(min(total, 0x7fffffffull));
        if (total > room)
            for (unsigned own = threadIdx.x; own < count; own += BLOCK)
                counts[start + own] = 0;
    });
}
