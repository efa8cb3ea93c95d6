#include "exposed.cuh"
#include "work.cuh"

// Finds where the exposed points of each atom start in the list, and their number; one block per
// structure. totals[] has the number of a structure's points. rooms[], [structures, 2], has the
// first point of each structure and the number of points that there is room for. If a structure's
// points exceed its room, its atoms get none.
KERNEL(BLOCK)
exposed_spans(const unsigned* header, const StructureSpan* structures, const Atom* atoms,
              const unsigned* bits, const unsigned* rooms, unsigned* starts, unsigned* counts,
              int* totals, unsigned words)
{
    wait_for_dependencies();
    __shared__ unsigned warp_sums[BLOCK / 32];
    each_block(header, STRUCTURES, [&](unsigned structure_index) {
        const StructureSpan& structure = structures[structure_index];
        const unsigned first = rooms[2 * structure_index], room = rooms[2 * structure_index + 1];
        const unsigned start = structure.atom_start, count = structure.atom_count;
        unsigned base = 0;
        // If 32 bits do not count the points, starts[] wrap around, and the atoms have no points.
        unsigned long long total = 0;
        for (unsigned step = 0; step < count; step += BLOCK) {
            const unsigned atom_index = start + step + threadIdx.x;
            const bool is_atom = step + threadIdx.x < count;
            unsigned points = 0;
            if (is_atom && present(atoms[atom_index]))
                for (unsigned word = 0; word < words; ++word)
                    points += __popc(bits[atom_index * words + word]);
            const unsigned before = base;
            const unsigned sum = block_scan(warp_sums, points, base);
            total += base - before;
            if (is_atom) {
                starts[atom_index] = first + sum - points;
                counts[atom_index] = points;
            }
            __syncthreads();
        }
        if (threadIdx.x == 0)
            totals[structure_index] = int(min(total, 0x7fffffffull));
        if (total > room)
            for (unsigned offset = threadIdx.x; offset < count; offset += BLOCK)
                counts[start + offset] = 0;
    });
}
