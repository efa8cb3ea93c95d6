#include "work.cuh"

// The edge of a cell for C-alphas and C-betas is 2^RESIDUE_CELL_SHIFT units of 0.001 A. A grid has
// at most as many cells as the structure has atoms, or CELLS_MIN if that is more.
constexpr unsigned RESIDUE_CELL_SHIFT = 13, CELLS_MIN = 64;

// The largest of a value over the threads of a block. `shared` is [BLOCK / 32].
__device__ inline int block_max(int* shared, int value)
{
    for (unsigned stride = 16; stride > 0; stride /= 2)
        value = max(value, __shfl_xor_sync(~0u, value, stride));
    __syncthreads();
    if (lane() == 0)
        shared[threadIdx.x / 32] = value;
    __syncthreads();
    for (unsigned w = 0; w < BLOCK / 32; ++w)
        value = max(value, shared[w]);
    return value;
}

// Computes the grid over each structure's C-alphas and C-betas, one block per structure.
KERNEL(BLOCK)
residue_grid(const unsigned* header, StructureSpan* structures /* updated */, const Atom* ca,
             const Atom* cb)
{
    wait_for_dependencies();
    __shared__ int shared[BLOCK / 32];
    each_block(header, STRUCTURES, [&](unsigned structure_index) {
        StructureSpan& structure = structures[structure_index];
        // The span of a rejected structure is all zeros.
        if (structure.atom_grid.wrap[0] == 0)
            return;
        constexpr int HIGHEST = 0x7fffffff;
        int low[3] = {HIGHEST, HIGHEST, HIGHEST}, high[3] = {~HIGHEST, ~HIGHEST, ~HIGHEST};
        const auto include = [&](const Atom& atom) {
            if (!present(atom))
                return;
            low[0] = min(low[0], atom.x), high[0] = max(high[0], atom.x);
            low[1] = min(low[1], atom.y), high[1] = max(high[1], atom.y);
            low[2] = min(low[2], atom.z), high[2] = max(high[2], atom.z);
        };
        const unsigned end = structure.residue_start + structure.residue_count;
        for (unsigned row = structure.residue_start + threadIdx.x; row < end; row += BLOCK) {
            include(ca[row]);
            include(cb[row]);
        }
        for (unsigned axis = 0; axis < 3; ++axis) {
            // The complement turns the order around.
            low[axis] = ~block_max(shared, ~low[axis]);
            high[axis] = block_max(shared, high[axis]);
        }
        if (threadIdx.x > 0)
            return;
        const bool empty = low[0] > high[0];
        Grid grid = {};
        unsigned long long cells = 1;
        for (unsigned axis = 0; axis < 3; ++axis) {
            low[axis] = empty ? 0 : low[axis];
            high[axis] = empty ? 0 : high[axis];
            grid.extent[axis] = (high[axis] - low[axis] >> RESIDUE_CELL_SHIFT) + 1;
            grid.wrap[axis] = grid.extent[axis];
            cells *= grid.wrap[axis];
        }
        // As `Grid::within` of src/features/grid.rs: of the widest axes the last is halved.
        while (cells > max(CELLS_MIN, structure.atom_count)) {
            const unsigned short *wrap = grid.wrap;
            const unsigned widest = wrap[2] >= wrap[0] && wrap[2] >= wrap[1] ? 2
                : wrap[1] >= wrap[0]                                        ? 1
                                                                            : 0;
            grid.wrap[widest] = (grid.wrap[widest] + 1) / 2;
            cells = 1ull * grid.wrap[0] * grid.wrap[1] * grid.wrap[2];
        }
        grid.x = low[0], grid.y = low[1], grid.z = low[2];
        grid.first = structure.atom_grid.first;
        grid.shift = RESIDUE_CELL_SHIFT;
        structure.residue_grid = grid;
    });
}
