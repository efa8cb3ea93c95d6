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

// The largest number of atoms in a cell, and of atoms in the cell of an atom on average. A
// structure with more gets a flag; see src/features/density.rs.
constexpr unsigned CELL_POINTS_MAX = 256, MEAN_CELL_POINTS_MAX = 128;
constexpr unsigned TOO_MANY = 1, TOO_MANY_ON_AVERAGE = 2, FLAG_MASK = 3;

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

// Whether no atom of the structure is in a cell, as in one that is too dense.
__device__ inline bool are_empty(const Cells& cells, const Grid& grid)
{
    const unsigned end = grid.first + unsigned(grid.wrap[0]) * grid.wrap[1] * grid.wrap[2];
    return cells.start[grid.first] == cells.start[end];
}

// Whether distant cells share an index.
__device__ inline bool wraps(const Grid& grid)
{
    return grid.wrap[0] < grid.extent[0] || grid.wrap[1] < grid.extent[1]
        || grid.wrap[2] < grid.extent[2];
}

// The runs of sorted atoms that include all atoms within `reach` of a box, which must touch the grid:
// for (unsigned run = 0; run < runs.count; ++run) runs.get(run, ...). A run has the cells of a row
// along x that are near enough; it may be empty. As `get` takes some forty instructions, the lanes of
// a warp should each get a run.
struct Runs {
    unsigned count;

    __device__ inline Runs(const Grid& grid, Position low, Position high, int reach)
        : grid(grid), low(low), high(high), reach(reach)
    {
        unsigned last;
        range(low.y - grid.y, high.y - grid.y, reach, grid.extent[1], y_low, last);
        rows = min(last - y_low + 1, unsigned(grid.wrap[1]));
        range(low.z - grid.z, high.z - grid.z, reach, grid.extent[2], z_low, last);
        count = rows * min(last - z_low + 1, unsigned(grid.wrap[2]));
    }

    // The first cell of a run, and the end of its last one.
    __device__ inline void cells(unsigned run, unsigned& begin, unsigned& end) const
    {
        const int from_x = low.x - grid.x, to_x = high.x - grid.x;
        const unsigned wrap = grid.wrap[0];
        unsigned z = z_low + run / rows, y = y_low + run % rows, from, last;
        if (wraps(grid)) {
            range(from_x, to_x, reach, grid.extent[0], from, last);
            const bool is_whole = last - from >= wrap || from % wrap > last % wrap;
            from = is_whole ? 0 : from % wrap;
            last = is_whole ? wrap - 1 : last % wrap;
            y %= grid.wrap[1];
            z %= grid.wrap[2];
        } else {
            const int apart_y = gap(y, low.y - grid.y, high.y - grid.y);
            const int apart_z = gap(z, low.z - grid.z, high.z - grid.z);
            const int rest = reach * reach - apart_y * apart_y - apart_z * apart_z;
            // One more than the root, because of rounding.
            const int reach_x = int(sqrtf(float(max(rest, 0)))) + 1;
            range(from_x, to_x, reach_x, grid.extent[0], from, last);
            last = rest < 0 ? from - 1 : last;
        }
        const unsigned row = grid.first + (z * grid.wrap[1] + y) * wrap;
        begin = row + from;
        end = row + last + 1;
    }

    // Sorted atoms begin ... < end.
    __device__ inline void get(unsigned run, const unsigned* start, unsigned& begin,
                               unsigned& end) const
    {
        cells(run, begin, end);
        begin = start[begin];
        end = start[end];
    }

private:
    const Grid& grid;
    Position low, high;
    int reach;
    unsigned y_low, z_low, rows;

    // The cells along an axis that are within `reach` of an interval.
    __device__ inline void range(int from, int to, int reach, unsigned extent, unsigned& begin,
                                 unsigned& last) const
    {
        begin = max(from - reach >> grid.shift, 0);
        last = min(to + reach >> grid.shift, int(extent) - 1);
    }

    // The distance of a cell from an interval along an axis. It is at most `reach`.
    __device__ inline int gap(unsigned cell, int from, int to) const
    {
        const int begin = int(cell << grid.shift), end = int(cell + 1 << grid.shift) - 1;
        return max(max(begin - to, from - end), 0);
    }
};

// A kernel's six parameters for sorted atoms, and the Cells of them.
#define CELL_PARAMS                                                                          \
    const unsigned *cell_start, const int *cell_x, const int *cell_y, const int *cell_z,     \
        const AtomTag *cell_tag, const unsigned *cell_source
#define CELLS_OF_PARAMS Cells{cell_start, cell_x, cell_y, cell_z, cell_tag, cell_source}
