#include "dssp.cuh"
#include "gather.cuh"
#include "work.cuh"

// The number of candidates that a warp takes at a time, with two lanes for each.
constexpr unsigned PAIRS = 16;
constexpr unsigned long long NO_BOND = ~0ull;

// The two best bonds so far, each as its energy above the minimum in cal/mol (upper 32 bits) and
// its partner (lower 32 bits). Of equally strong bonds the one with the lower partner is better.
struct BestBonds {
    unsigned long long first = NO_BOND, second = NO_BOND;

    __device__ inline void add(unsigned long long bond)
    {
        second = min(second, max(first, bond));
        first = min(first, bond);
    }
};

// Finds the best two acceptors of each residue's N-H and the best two donors to its O, one warp per
// residue. In even lanes the residue is the donor, in odd lanes the acceptor. A residue's N-H and
// the O of the one before it are never bonded, nor are residues of different chains if own_chain.
KERNEL(32 * WARPS)
hydrogen_bonds(const unsigned* header, const StructureSpan* structures, const ResidueSpan* residues,
               const Atom* atoms, CELL_PARAMS, const Backbone* backbone, const float4* hydrogens,
               int* partners, float* energies, unsigned own_chain)
{
    wait_for_dependencies();
    __shared__ unsigned queues[WARPS][PAIRS + 32];
    each_warp(header, RESIDUES, [&](unsigned residue) {
        const unsigned lane = threadIdx.x % 32, is_acceptor = lane % 2;
        unsigned* queue = queues[threadIdx.x / 32];
        const StructureSpan& structure = structures[residues[residue].structure];

        BestBonds best;
        const auto consider = [&](unsigned other) {
            const unsigned donor = is_acceptor ? other : residue;
            const unsigned acceptor = is_acceptor ? residue : other;
            const float4 hydrogen = hydrogens[donor];
            if (hydrogen.w != DONOR || hydrogens[acceptor].w == INCOMPLETE
                || donor == acceptor + 1)
                return;
            const Backbone& to = backbone[acceptor];
            const int energy = bond_energy(backbone[donor].n, hydrogen, to.c, to.o);
            if (energy < 0)
                best.add((unsigned long long)(energy - ENERGY_MIN) << 32 | other);
        };
        if (hydrogens[residue].w != INCOMPLETE) {
            const Cells cells = CELLS_OF_PARAMS;
            const Atom atom = atoms[residue];
            uint2* places = warp_memory<Places, WARPS>().scratch;
            unsigned pending = 0;
            const auto visit = [&](bool has_atom, unsigned sorted) {
                const bool near = has_atom && cells.source[sorted] != residue
                    && !(own_chain && !same_chain(cells.tag[sorted], atom.tag))
                    && squared(cells.x[sorted] - atom.x, cells.y[sorted] - atom.y,
                               cells.z[sorted] - atom.z)
                        < BOND_REACH * BOND_REACH;
                const unsigned found = __ballot_sync(~0u, near);
                if (near)
                    queue[pending + before(found)] = cells.source[sorted];
                pending += __popc(found);
                __syncwarp();
                for (; pending >= PAIRS; pending -= PAIRS)
                    consider(queue[pending - PAIRS + lane / 2]);
                __syncwarp();
            };
            each_candidate(cells, structure.residue_grid, atom, BOND_REACH, places, visit);
            if (lane / 2 < pending)
                consider(queue[lane / 2]);
        }
        for (unsigned stride = 2; stride < 32; stride *= 2) {
            const unsigned long long first = __shfl_xor_sync(~0u, best.first, stride);
            const unsigned long long second = __shfl_xor_sync(~0u, best.second, stride);
            best.add(first);
            best.add(second);
        }
        if (lane < 2) {
            const unsigned long long bonds[2] = {best.first, best.second};
            for (unsigned which = 0; which < 2; ++which) {
                const unsigned place = 4 * residue + 2 * is_acceptor + which;
                const bool found = bonds[which] != NO_BOND;
                const int partner = int(unsigned(bonds[which])) - int(structure.residue_start);
                const int energy = int(bonds[which] >> 32) + ENERGY_MIN;
                partners[place] = found ? partner : NULL_COUNT;
                energies[place] = found ? float(energy) / 1000.0f : null_real();
            }
        }
    });
}
