// Exact differences of positions, in double precision. The CPU version is
// src/features/cpu/vector.rs.
#pragma once
#include "layout.cuh"

struct Vector { double x, y, z; };

__device__ inline Position position(Atom atom) { return {atom.x, atom.y, atom.z}; }

// The corners of the box around the atoms of a residue that has some.
__device__ inline void corners(const ResidueSpan& residue, const Atom* atoms, Position& low,
                               Position& high)
{
    low = high = position(atoms[residue.atom_start]);
    for (unsigned a = 1; a < residue.atom_count; ++a) {
        const Atom atom = atoms[residue.atom_start + a];
        low = {min(low.x, atom.x), min(low.y, atom.y), min(low.z, atom.z)};
        high = {max(high.x, atom.x), max(high.y, atom.y), max(high.z, atom.z)};
    }
}

__device__ inline Vector difference(Position to, Position from)
{
    return {double(to.x - from.x), double(to.y - from.y), double(to.z - from.z)};
}

__device__ inline double dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

__device__ inline Vector cross(Vector a, Vector b)
{
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
