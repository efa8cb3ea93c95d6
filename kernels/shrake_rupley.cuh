// What sasa.cu and sasa_delta.cu share.
//
// Neighbour j, at d from atom i, buries a test point u of i if u . d >= t, with
// t = (|d|^2 + R_i^2 - R_j^2) / (2 R_i), lengths in 0.001 A. All but the last
// division is exact in integers; what is rounded after is rounded alike on all
// machines, and so are the counts. Areas are sums of n R^2 in integers, which do
// not depend on the order.
#pragma once
#include "cells.cuh"

// The largest radius of an atom in 0.001 A.
constexpr int RADIUS_MAX = 1900;
constexpr unsigned SASA_THREADS = 128;
// Neighbours of one chunk.
constexpr unsigned CHUNK = 64;

// An atom's test points: `count` of them, side by side by axis.
struct Sphere {
    const float *x, *y, *z;
    unsigned count;
    int probe;
};

// Which of a lane's points (bit m is point 32 m + lane) no half space buries.
__device__ inline unsigned outside(const Sphere& sphere, unsigned open, const float4* half_spaces,
                                   unsigned count)
{
    for (unsigned left = open; left != 0; left &= left - 1) {
        const unsigned bit = __ffs(left) - 1, point = bit * 32 + threadIdx.x % 32;
        const float x = sphere.x[point], y = sphere.y[point], z = sphere.z[point];
        for (unsigned n = 0; n < count; ++n) {
            const float4 h = half_spaces[n];
            if (__fmaf_rn(x, h.x, __fmaf_rn(y, h.y, __fmaf_rn(z, h.z, h.w))) >= 0.0f) {
                open &= ~(1u << bit);
                break;
            }
        }
    }
    return open;
}

// A residue's areas: all atoms', the side chain's, the polar atoms', and what
// other chains bury; in squared 0.001 A of a point.
struct Areas { unsigned long long all, side, polar, delta; };

// The areas of one residue, a warp together. Where BY_CHAIN is false, all chains
// are one.
template <bool BY_CHAIN>
__device__ inline Areas residue_areas(const Structure* structures, const Residue& residue,
                                      const Atom* atoms, const Cells& cells,
                                      const Sphere& sphere)
{
    __shared__ float4 chunks[SASA_THREADS / 32][CHUNK];
    float4* chunk = chunks[threadIdx.x / 32];
    const unsigned lane = threadIdx.x % 32;
    const Grid& grid = structures[residue.structure].atom_grid;
    unsigned all = 0;
    for (unsigned m = 0; m * 32 + lane < sphere.count; ++m)
        all |= 1u << m;
    Areas areas{};
    for (unsigned own = residue.atom_start; own < residue.atom_start + residue.atom_count; ++own) {
        const Atom atom = atoms[own];
        const int radius = int(tag_radius(atom.tag)) + sphere.probe;
        const Runs runs(grid, atom.x, atom.y, atom.z, radius + RADIUS_MAX + sphere.probe);
        const float half_inverse = 1.0f / float(2 * radius);
        unsigned open = all, alone = 0;
        for (unsigned pass = 0; pass < (BY_CHAIN ? 2 : 1); ++pass) {
            unsigned count = 0;
            for (unsigned run = 0; run < runs.count; ++run) {
                unsigned begin, end;
                runs.get(run, cells.start, begin, end);
                for (unsigned base = begin; base < end; base += 32) {
                    const unsigned at = base + lane;
                    bool wanted = at < end && cells.source[at] != own;
                    float4 h{};
                    if (wanted) {
                        const unsigned tag = cells.tag[at];
                        const int other = int(tag_radius(tag)) + sphere.probe;
                        const int both = radius + other;
                        const int dx = cells.x[at] - atom.x, dy = cells.y[at] - atom.y,
                                  dz = cells.z[at] - atom.z;
                        const unsigned d2 = squared(dx, dy, dz);
                        wanted = d2 < unsigned(both * both);
                        if (BY_CHAIN)
                            wanted &= (tag_chain(tag) == tag_chain(atom.tag)) == (pass == 0);
                        const int t = other * other - (int(d2) + radius * radius);
                        h = {float(dx), float(dy), float(dz), float(t) * half_inverse};
                    }
                    const unsigned found = __ballot_sync(~0u, wanted);
                    if (wanted)
                        chunk[count + __popc(found & ((1u << lane) - 1))] = h;
                    count += __popc(found);
                    if (count > CHUNK - 32) {
                        __syncwarp();
                        open = outside(sphere, open, chunk, count);
                        __syncwarp();
                        count = 0;
                    }
                }
            }
            __syncwarp();
            open = outside(sphere, open, chunk, count);
            __syncwarp();
            if (pass == 0)
                alone = open;
        }
        const unsigned long long unit = (unsigned long long)radius * radius;
        const unsigned long long area = unit * warp_sum(__popc(open));
        areas.all += area;
        areas.side += tag_side(atom.tag) ? area : 0;
        areas.polar += tag_polar(atom.tag) ? area : 0;
        if (BY_CHAIN)
            areas.delta += unit * warp_sum(__popc(alone)) - area;
    }
    return areas;
}

// An area in A^2; null where there is no atom.
__device__ inline float angstrom2(unsigned long long area, const Residue& residue, unsigned points)
{
    const double scale = 4e-6 * 3.141592653589793 / double(points);
    return residue.atom_count > 0 ? float(double(area) * scale) : null_real();
}
