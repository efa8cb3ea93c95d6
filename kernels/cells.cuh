// Cell lists: the atoms of a structure sorted by grid cell, with x varying fastest.
// src/features/grid.rs describes the grid.
#pragma once
#include "layout.cuh"

// Atoms of the batch sorted by cell. `start` has the index of the first sorted atom of each cell,
// and the end of each structure's last cell. `source` has the original index of each sorted atom.
struct Cells {
    const unsigned* start;
    const int *x, *y, *z;
    const AtomTag* tag;
    const unsigned* source;
};

// The cell of a position of the structure, as an index into the batch's list.
__device__ inline unsigned cell_of(const Grid& grid, int x, int y, int z)
{
    const unsigned cx = unsigned(x - grid.x) >> grid.shift;
    const unsigned cy = unsigned(y - grid.y) >> grid.shift;
    const unsigned cz = unsigned(z - grid.z) >> grid.shift;
    // Grids rarely wrap, and a remainder is slow.
    const unsigned wx = cx < grid.wrap[0] ? cx : cx % grid.wrap[0];
    const unsigned wy = cy < grid.wrap[1] ? cy : cy % grid.wrap[1];
    const unsigned wz = cz < grid.wrap[2] ? cz : cz % grid.wrap[2];
    return grid.first + (wz * grid.wrap[1] + wy) * grid.wrap[0] + wx;
}

// Whether distant cells share an index.
__device__ inline bool wraps(const Grid& grid)
{
    return grid.wrap[0] < grid.extent[0] || grid.wrap[1] < grid.extent[1]
        || grid.wrap[2] < grid.extent[2];
}

// The runs of sorted atoms that include all atoms within `reach` of a position in the grid: for
// (unsigned run = 0; run < runs.count; ++run) runs.get(run, ...).
struct Runs {
    unsigned count;

    __device__ inline Runs(const Grid& grid, int x, int y, int z, int reach)
        : Runs(grid, {x - reach, y - reach, z - reach}, {x + reach, y + reach, z + reach})
    {
    }

    // The runs that include all atoms between two corners; the box must touch the grid.
    __device__ inline Runs(const Grid& grid, Position low_corner, Position high_corner)
    {
        unsigned low, high;
        range(low_corner.x - grid.x, high_corner.x - grid.x, grid.shift, grid.extent[0], low,
              high);
        const unsigned nx = grid.wrap[0];
        from = low < nx ? low : low % nx;
        to = high < nx ? high : high % nx;
        if (high - low >= nx || from > to) {
            from = 0;
            to = nx - 1;
        }
        range(low_corner.y - grid.y, high_corner.y - grid.y, grid.shift, grid.extent[1], y_low,
              high);
        rows = min(high - y_low + 1, unsigned(grid.wrap[1]));
        range(low_corner.z - grid.z, high_corner.z - grid.z, grid.shift, grid.extent[2], z_low,
              high);
        count = rows * min(high - z_low + 1, unsigned(grid.wrap[2]));
        first = grid.first;
        wrap_x = nx;
        wrap_y = grid.wrap[1];
        wrap_z = grid.wrap[2];
    }

    // The first and the last cell of a run.
    __device__ inline void cells(unsigned run, unsigned& begin, unsigned& last) const
    {
        unsigned z = z_low + run / rows, y = y_low + run % rows;
        z = z < wrap_z ? z : z % wrap_z;
        y = y < wrap_y ? y : y % wrap_y;
        const unsigned row = first + (z * wrap_y + y) * wrap_x;
        begin = row + from;
        last = row + to;
    }

    // Sorted atoms begin ... < end.
    __device__ inline void get(unsigned run, const unsigned* start, unsigned& begin,
                               unsigned& end) const
    {
        unsigned last;
        cells(run, begin, last);
        begin = start[begin];
        end = start[last + 1];
    }

private:
    unsigned first, wrap_x, wrap_y, wrap_z, from, to, y_low, z_low, rows;

    // The cells along an axis between two coordinates.
    __device__ static inline void range(int low_at, int high_at, unsigned shift,
                                        unsigned extent, unsigned& low, unsigned& high)
    {
        low = max(low_at >> shift, 0);
        high = min(high_at >> shift, int(extent) - 1);
    }
};

// A kernel's six parameters for sorted atoms, and the Cells of them.
#define CELL_PARAMS                                                                          \
    const unsigned *cell_start, const int *cell_x, const int *cell_y, const int *cell_z,     \
        const AtomTag *cell_tag, const unsigned *cell_source
#define CELLS_OF_PARAMS Cells{cell_start, cell_x, cell_y, cell_z, cell_tag, cell_source}

// Calls `visit` with every sorted atom that may lie within `reach` of an atom of the structure,
// including the atom itself. All threads of the warp call; each half of the warp takes a run.
template <typename Visit>
__device__ inline void for_each_candidate(const Cells& cells, const Grid& grid, Atom atom,
                                          int reach, Visit visit)
{
    const Runs runs(grid, atom.x, atom.y, atom.z, reach);
    for (unsigned run = threadIdx.x / 16 % 2; run < runs.count; run += 2) {
        unsigned begin, end;
        runs.get(run, cells.start, begin, end);
        for (unsigned other = begin + threadIdx.x % 16; other < end; other += 16)
            visit(other);
    }
}
