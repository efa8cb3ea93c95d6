// Exposed points: the test points of atoms that no other atom buries. The kernels exposed_*.cu list
// them in a buffer of data-dependent length, and the kernels *_surface.cu find the outer surface.
#pragma once
#include "forest.cuh"
#include "gather.cuh"

// Points begin ... < end.
struct PointRange {
    unsigned begin, end;

    __device__ inline bool empty() const { return begin == end; }
};

// The listed points of all atoms, relative to the atom's position in 0.001 A. An atom has count[]
// points from start[] on.
struct Exposed {
    const unsigned *start, *count;
    const float *x, *y, *z;

    __device__ inline PointRange range_of(unsigned atom) const
    {
        return {start[atom], start[atom] + count[atom]};
    }
};

// The x of a point that is not of the outer surface. It is farther than any other.
constexpr float NOT_OUTER = 1e15f;

// A kernel's five parameters for listed points, and the Exposed of them.
#define POINT_PARAMS                                                                         \
    const unsigned *point_start, const unsigned *point_count, const float *point_x,          \
        const float *point_y, const float *point_z
#define EXPOSED_OF_PARAMS Exposed{point_start, point_count, point_x, point_y, point_z}

// The structure of an atom.
__device__ inline const StructureSpan& structure_of(const StructureSpan* structures,
                                                    const ChainSpan* chains, AtomTag tag)
{
    return structures[chains[tag_chain(tag)].structure];
}

// The squared length of a vector, rounded in the same way on all machines.
__device__ inline float square_of(float x, float y, float z) { return x * x + y * y + z * z; }

// The square of a length.
__device__ inline float square_of(float length) { return length * length; }
