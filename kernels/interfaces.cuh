// Interfaces: the chains near each residue, which are its partners, and pairs of chains in contact.
// The kernels interface_*.cu pass both on in buffers of data-dependent length. Each of a
// structure's units of room holds so many partners and interfaces.
#pragma once
#include "gather.cuh"
#include "other_chains.cuh"
#include "shrake_rupley.cuh"
#include "work.cuh"

constexpr unsigned PARTNERS_PER_UNIT = 4, INTERFACES_PER_UNIT = 1;

// Places begin ... < end in a buffer.
struct Entries {
    unsigned begin, end;
};

// The entries of residue or chain `row` of a structure that has `count` of them from `first` on.
// They end at ends[row], counted from the structure's first entry. `room` is the structure's first
// unit of room and the number of units. Empty if the structure's entries exceed its room.
__device__ inline Entries entries_of(const int* ends, unsigned first, unsigned count, unsigned row,
                                     const unsigned* room, unsigned per_unit)
{
    const unsigned start = per_unit * room[0];
    if (unsigned(ends[first + count - 1]) > per_unit * room[1])
        return {start, start};
    return {start + (row > first ? unsigned(ends[row - 1]) : 0), start + unsigned(ends[row])};
}

// The partners of a residue.
__device__ inline Entries partners_of(const StructureSpan& structure, const int* partner_ends,
                                      unsigned row, const unsigned* room)
{
    return entries_of(partner_ends, structure.residue_start, structure.residue_count, row, room,
                      PARTNERS_PER_UNIT);
}

// The interfaces of a chain with later chains.
__device__ inline Entries interfaces_of(const StructureSpan& structure, const int* interface_ends,
                                        unsigned row, const unsigned* room)
{
    return entries_of(interface_ends, structure.chain_start, structure.chain_count, row, room,
                      INTERFACES_PER_UNIT);
}

// Whether an atom of the residue is closer to a sorted atom than `least` or than the sum of both
// radii and two probes, whichever is more.
__device__ inline bool is_near(const Cells& cells, unsigned sorted, const ResidueSpan& residue,
                               const Atom* atoms, unsigned least, unsigned probes)
{
    const int x = cells.x[sorted], y = cells.y[sorted], z = cells.z[sorted];
    const unsigned radius = tag_radius(cells.tag[sorted]) + probes;
    for (unsigned a = 0; a < residue.atom_count; ++a) {
        const Atom atom = atoms[residue.atom_start + a];
        const unsigned reach = max(least, tag_radius(atom.tag) + radius);
        if (squared(x - atom.x, y - atom.y, z - atom.z) < reach * reach)
            return true;
    }
    return false;
}

// Whether an atom of the residue is closer to a point than `cutoff`.
__device__ inline bool is_within(const Position& point, const ResidueSpan& residue,
                                 const Atom* atoms, unsigned cutoff)
{
    for (unsigned a = 0; a < residue.atom_count; ++a) {
        const Atom atom = atoms[residue.atom_start + a];
        if (squared(point.x - atom.x, point.y - atom.y, point.z - atom.z) < cutoff * cutoff)
            return true;
    }
    return false;
}

// Calls visit(base, chains) for the partners of a residue in ascending order, 64 chains at a time:
// bit k of `chains` stands for chain base + k of the batch. All threads of the warp call, and get
// the same. A partner has an atom for which is_near() holds.
template <typename Visit>
__device__ inline void each_partner(const Cells& cells, const StructureSpan& structure,
                                    const unsigned* ranges, const ResidueSpan& residue,
                                    const Atom* atoms, unsigned least, unsigned probe, Visit visit)
{
    if (structure.chain_count < 2 || residue.atom_count == 0)
        return;
    constexpr int NONE = 0x7fffffff;
    const int reach = max(int(least), 2 * (RADIUS_MAX + int(probe)));
    Position low, high;
    corners(residue, atoms, low, high);
    for (int base = int(structure.chain_start); base != NONE;) {
        unsigned long long chains = 0;
        int next = NONE;
        const auto visit_atom = [&](unsigned sorted) {
            const int chain = int(tag_chain(cells.tag[sorted])), bit = chain - base;
            // Skips chains that this search has found already, or an earlier one.
            if (bit < 0 || chain >= next || (bit < 64 && chains >> bit & 1))
                return;
            if (!is_near(cells, sorted, residue, atoms, least, 2 * probe))
                return;
            if (bit < 64)
                chains |= 1ull << bit;
            else
                next = chain;
        };
        each_of_other_chains(cells, structure.atom_grid, ranges, residue.chain, low, high, reach,
                             visit_atom);
        const unsigned lower = warp_or(unsigned(chains)), upper = warp_or(unsigned(chains >> 32));
        visit(unsigned(base), (unsigned long long)(upper) << 32 | lower);
        base = warp_min(next);
    }
}

// The least value of all threads of a block of BLOCK. `warp_values` is [BLOCK / 32].
__device__ inline int block_min(int* warp_values, int value)
{
    value = warp_min(value);
    __syncthreads();
    if (lane() == 0)
        warp_values[threadIdx.x / 32] = value;
    __syncthreads();
    for (unsigned w = 0; w < BLOCK / 32; ++w)
        value = min(value, warp_values[w]);
    return value;
}

// The partners of the residues of a chain, for a block.
struct ChainPartners {
    const StructureSpan& structure;
    const unsigned *members, *room;
    const int* ends;
    const unsigned *partners, *contacts;

    // Calls visit(place) for each partner of the residues of a chain, each on one thread.
    template <typename Visit> __device__ inline void each(const ChainSpan& chain, Visit visit) const
    {
        for (unsigned k = threadIdx.x; k < chain.count; k += BLOCK) {
            const unsigned residue = members[chain.member_start + k];
            const Entries entries = partners_of(structure, ends, residue, room);
            for (unsigned place = entries.begin; place < entries.end; ++place)
                visit(place);
        }
    }

    // The first chain after `last` that is in contact with a chain; -1 if there is none. All
    // threads of the block call. `warp_values` is [BLOCK / 32].
    __device__ inline int next(const ChainSpan& chain, int last, int* warp_values) const
    {
        constexpr int NONE = 0x7fffffff;
        int found = NONE;
        each(chain, [&](unsigned place) {
            const int partner = int(partners[place]);
            if (partner > last && partner < found && contacts[place] > 0)
                found = partner;
        });
        found = block_min(warp_values, found);
        return found == NONE ? -1 : found;
    }
};

// Writes for each partner of a residue the part of the residue's area in its own chain that the partner
// alone buries, in units of 1e-6 A^2 per part of a sphere. `Algorithm`, `first` and `count` are those
// of areas.cuh.
template <typename Algorithm>
__device__ inline void write_partner_areas(const unsigned* header, const StructureSpan* structures,
                                           const ResidueSpan* residues, const Atom* atoms,
                                           const Cells& cells, const unsigned* rooms,
                                           const int* ends, const unsigned* partners,
                                           unsigned long long* buried, unsigned first,
                                           unsigned count, unsigned probe)
{
    using namespace shrake_rupley;
    Workspace& work = warp_memory<Workspace, THREADS / 32>();
    each_warp(header, RESIDUES, [&](unsigned row) {
        const ResidueSpan residue = residues[row];
        if (residue.atom_count == 0)
            return;
        const StructureSpan& structure = structures[residue.structure];
        const Entries entries = partners_of(structure, ends, row, rooms + 2 * residue.structure);
        for (unsigned place = entries.begin; place < entries.end; ++place) {
            const Context context{work,
                                  cells,
                                  structure.atom_grid,
                                  residue.chain,
                                  (const float*)header + first,
                                  count,
                                  int(probe),
                                  partners[place]};
            const unsigned long long area
                = Algorithm::template areas<Others::ONE_CHAIN>(context, residue, atoms);
            if (lane() == DELTA)
                buried[place] = area;
        }
    });
}
