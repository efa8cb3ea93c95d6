// Searches for the residues near a residue, with a warp: by a point of each residue, or by all
// heavy atoms. The distance of two residues is that of their points, or of their nearest atoms.
#pragma once
#include "gather.cuh"

// The squared distance of two atoms, which is exact for all positions.
__device__ inline unsigned long long squared_apart(Atom one, Atom two)
{
    const long long x = one.x - two.x, y = one.y - two.y, z = one.z - two.z;
    return (unsigned long long)(x * x + y * y + z * z);
}

// The least squared distance of an atom of one residue and one of another; all bits set if one of
// them has no atom.
__device__ inline unsigned long long least_squared(const Atom* atoms, const ResidueSpan& residue,
                                                   const ResidueSpan& other)
{
    unsigned near = ~0u;
    for (unsigned a = 0; a < residue.atom_count; ++a) {
        const Atom one = atoms[residue.atom_start + a];
        for (unsigned b = 0; b < other.atom_count; ++b) {
            const Atom two = atoms[other.atom_start + b];
            near = min(near, squared(one.x - two.x, one.y - two.y, one.z - two.z));
        }
    }
    // `squared` is exact below this.
    if (near < unsigned(REACH) * unsigned(REACH))
        return near;
    unsigned long long least = ~0ull;
    for (unsigned a = 0; a < residue.atom_count; ++a)
        for (unsigned b = 0; b < other.atom_count; ++b)
            least = min(least, squared_apart(atoms[residue.atom_start + a],
                                             atoms[other.atom_start + b]));
    return least;
}

// The distance in A whose square is `square`, in (0.001 A)^2.
__device__ inline float angstrom(unsigned long long square)
{
    return float(sqrt(double(square)) / 1000.0);
}

// The search around residue `row` by points; a residue may have no point. With `own_chain` only
// residues of its chain are found. `places` is [32].
struct ByPoints {
    const Cells& cells;
    const StructureSpan& structure;
    const Atom* points;
    unsigned row, own_chain;
    Atom point;
    uint2* places;

    __device__ inline ByPoints(const Cells& cells, const StructureSpan& structure,
                               const Atom* points, unsigned row, unsigned own_chain, uint2* places)
        : cells(cells), structure(structure), points(points), row(row), own_chain(own_chain),
          point(points[row]), places(places)
    {
    }

    // Whether the search can find residues: this one has a point, and the structure's cells are not
    // empty.
    __device__ inline bool is_searchable() const
    {
        return present(point) && !are_empty(cells, structure.residue_grid);
    }

    // Calls visit(is_partner, other) for 32 candidates at a time, one per lane. Every other residue
    // from `from` on that is nearer than `reach` is a partner once.
    template <typename Visit>
    __device__ inline void each_within(unsigned reach, unsigned from, Visit visit) const
    {
        const Grid& grid = structure.residue_grid;
        each_candidate(cells, grid, point, int(reach), places, [&](bool has_atom, unsigned sorted) {
            unsigned other = 0;
            bool is_partner = false;
            if (has_atom) {
                other = cells.source[sorted];
                const unsigned d2 = squared(cells.x[sorted] - point.x, cells.y[sorted] - point.y,
                                            cells.z[sorted] - point.z);
                is_partner = other >= from && other != row && d2 < reach * reach
                    && !(own_chain && !same_chain(cells.tag[sorted], point.tag));
            }
            visit(is_partner, other);
        });
    }

    // Whether a residue of the structure counts as a neighbour if it is near enough.
    __device__ inline bool is_wanted(unsigned other) const
    {
        const Atom there = points[other];
        return other != row && present(there) && !(own_chain && !same_chain(there.tag, point.tag));
    }

    // The squared distance of a residue for which is_wanted() holds.
    __device__ inline unsigned long long square(unsigned other) const
    {
        return squared_apart(points[other], point);
    }
};

// The search of ByPoints, by heavy atoms. `residue_of` has the residue of each atom plus one, and
// zero for an atom of no residue.
struct ByAtoms {
    const Cells& cells;
    const StructureSpan& structure;
    const ResidueSpan* residues;
    const Atom* atoms;
    const unsigned* residue_of;
    unsigned row, own_chain;
    ResidueSpan residue;
    uint2* places;

    __device__ inline ByAtoms(const Cells& cells, const StructureSpan* structures,
                              const ResidueSpan* residues, const Atom* atoms,
                              const unsigned* residue_of, unsigned row, unsigned own_chain,
                              uint2* places)
        : cells(cells), structure(structures[residues[row].structure]), residues(residues),
          atoms(atoms), residue_of(residue_of), row(row), own_chain(own_chain),
          residue(residues[row]), places(places)
    {
    }

    __device__ inline bool is_searchable() const
    {
        return residue.atom_count > 0 && !are_empty(cells, structure.atom_grid);
    }

    template <typename Visit>
    __device__ inline void each_within(unsigned reach, unsigned from, Visit visit) const
    {
        Position low, high;
        corners(residue, atoms, low, high);
        const Runs runs(structure.atom_grid, low, high, int(reach));
        for (unsigned first = 0; first < runs.count; first += 32) {
            const Laid laid(runs, first, cells.start, places);
            for (unsigned step = 0; step < laid.total; step += 32) {
                const unsigned sorted = laid.sorted_atom(step);
                unsigned other = 0;
                bool is_partner = false;
                if (step + lane() < laid.total) {
                    const Atom atom{cells.x[sorted], cells.y[sorted], cells.z[sorted],
                                    cells.tag[sorted]};
                    if (squared(apart(atom.x, low.x, high.x), apart(atom.y, low.y, high.y),
                                apart(atom.z, low.z, high.z)) < reach * reach)
                        is_partner = stands_for(atom, cells.source[sorted], reach, from, other);
                }
                visit(is_partner, other);
            }
        }
    }

    __device__ inline bool is_wanted(unsigned other) const
    {
        return other != row && residues[other].atom_count > 0
            && !(own_chain && residues[other].chain != residue.chain);
    }

    __device__ inline unsigned long long square(unsigned other) const
    {
        return least_squared(atoms, residue, residues[other]);
    }

private:
    // The distance of a coordinate from an interval.
    __device__ inline int apart(int value, int low, int high) const
    {
        return max(max(low - value, value - high), 0);
    }

    __device__ inline bool is_near(Atom atom, unsigned reach) const
    {
        for (unsigned a = 0; a < residue.atom_count; ++a) {
            const Atom one = atoms[residue.atom_start + a];
            if (squared(atom.x - one.x, atom.y - one.y, atom.z - one.z) < reach * reach)
                return true;
        }
        return false;
    }

    // Whether the atom with this index is the first near atom of a residue that counts, so that a
    // residue is found once.
    __device__ inline bool stands_for(Atom atom, unsigned index, unsigned reach, unsigned from,
                                      unsigned& other) const
    {
        const unsigned number = residue_of[index];
        if (number == 0 || number - 1 < from || number - 1 == row
            || (own_chain && tag_chain(atom.tag) != residue.chain) || !is_near(atom, reach))
            return false;
        other = number - 1;
        for (unsigned earlier = residues[other].atom_start; earlier < index; ++earlier)
            if (is_near(atoms[earlier], reach))
                return false;
        return true;
    }
};
