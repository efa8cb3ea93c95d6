// Finds the atoms within a radius of a few atoms of a residue. Float arithmetic decides, except for
// distances so near the radius that exact integers are needed.
#pragma once
#include "gather.cuh"
#include "vector.cuh"

// The largest number of atoms of a group; no standard residue has more. And the longest edge of the
// box around a group of several atoms.
constexpr unsigned FEW = 16;
constexpr int FEW_EDGE = 16000;
// An upper bound of the rounding errors, for coordinates of at most REACH + FEW_EDGE.
constexpr float UNCERTAIN = 4096.0f;

// A warp's shared memory: a group of atoms, and the candidates around it.
struct Around {
    static constexpr unsigned ROOM = 128;
    // Positions relative to the box's low corner, and their squared lengths.
    float4 candidates[ROOM];
    unsigned values[ROOM];
    uint2 places[32];
    // -2 q and |q|^2 - R^2 for each atom q of the group. In registers they would leave room for fewer
    // warps.
    float4 few[FEW];
};

// Computes |p - q|^2 - R^2 for a candidate p and each atom q of a group, as
// |p|^2 - 2 q . p + |q|^2 - R^2.
struct Few {
    float4* few;
    unsigned count;

    // All lanes call.
    __device__ inline Few(Around& around, const Atom* atoms, unsigned length, Position low,
                          unsigned radius)
        : few(around.few), count(length)
    {
        __syncwarp();
        if (lane() < FEW) {
            const Atom atom = atoms[min(lane(), length - 1)];
            const float qx = float(atom.x - low.x), qy = float(atom.y - low.y),
                        qz = float(atom.z - low.z);
            const float q2 = __fmaf_rn(qx, qx, __fmaf_rn(qy, qy, qz * qz));
            const float rest = lane() < length ? q2 - float(radius) * float(radius) : 1e30f;
            few[lane()] = {-2.0f * qx, -2.0f * qy, -2.0f * qz, rest};
        }
        __syncwarp();
    }

    // 1 if the value is negative, else 0.
    __device__ static inline int sign(float value) { return int(__float_as_uint(value) >> 31); }

    // |p - q|^2 - R^2, with an error of less than UNCERTAIN.
    __device__ static inline float guess(float4 candidate, float4 q)
    {
        float value = __fmaf_rn(candidate.x, q.x, candidate.w + q.w);
        value = __fmaf_rn(candidate.y, q.y, value);
        return __fmaf_rn(candidate.z, q.z, value);
    }

    // Calls add(k, near) with 1 if the candidate is near atom k, else 0. A second call may correct
    // the first.
    template <typename Add>
    __device__ inline void each(float4 candidate, unsigned radius, Add add) const
    {
        float least = UNCERTAIN;
#pragma unroll
        for (unsigned k = 0; k < FEW; k += 2) {
            if (k >= count)
                break;
#pragma unroll
            for (unsigned atom = k; atom < k + 2; ++atom) {
                const float value = guess(candidate, few[atom]);
                least = fminf(least, fabsf(value));
                add(atom, sign(value));
            }
        }
        if (least < UNCERTAIN) {
#pragma unroll
            for (unsigned k = 0; k < FEW; ++k) {
                if (k >= count)
                    break;
                const float4 q = few[k];
                const unsigned d2 = squared(int(candidate.x + 0.5f * q.x),
                                            int(candidate.y + 0.5f * q.y),
                                            int(candidate.z + 0.5f * q.z));
                add(k, int(d2 < radius * radius) - sign(guess(candidate, q)));
            }
        }
    }
};

// Goes through a residue's atoms in groups, and for each group through the sorted atoms around it
// for which want(sorted) is true; value(sorted) is stored for each. For each group it calls
// begin(), then visit(few, candidate, value) with a different candidate in each lane of the warp,
// then end(length). A lane without a candidate visits one that is far away.
template <typename Want, typename Value, typename Begin, typename Visit, typename End>
__device__ inline void each_few(Around& around, const Cells& cells, const Grid& grid,
                                const ResidueSpan& residue, const Atom* atoms, unsigned radius,
                                Want want, Value value, Begin begin, Visit visit, End end)
{
    for (unsigned first = 0; first < residue.atom_count;) {
        unsigned length = min(FEW, residue.atom_count - first);
        const Atom* group = atoms + residue.atom_start + first;
        const Atom atom = group[min(lane(), length - 1)];
        Box box(atom.x, atom.y, atom.z);
        if (box.edge() > FEW_EDGE) {
            length = 1;
            box.low = box.high = position(group[0]);
        }
        const Few few(around, group, length, box.low, radius);
        const auto sorted_index = [](unsigned sorted) { return sorted; };
        const auto keep = [&](unsigned place, unsigned sorted, float x, float y, float z) {
            around.candidates[place] = {x, y, z, __fmaf_rn(x, x, __fmaf_rn(y, y, z * z))};
            around.values[place] = value(sorted);
        };
        const auto visit_all = [&](unsigned count) {
            __syncwarp();
            for (unsigned base = 0; base < count; base += 32) {
                const unsigned place = base + lane();
                const bool is_there = place < count;
                visit(few,
                      is_there ? around.candidates[place] : float4{0.0f, 0.0f, 0.0f, 1e30f},
                      is_there ? around.values[place] : 0);
            }
            __syncwarp();
            return 0u;
        };
        begin();
        // A little more than the radius, because of rounding.
        visit_all(gather(cells, grid, box, int(radius) + 1, Around::ROOM, around.places,
                         sorted_index, want, keep, visit_all));
        end(length);
        first += length;
    }
}
