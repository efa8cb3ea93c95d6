#include "shrake_rupley.cuh"
#include "work.cuh"

// The most atoms that a warp takes: consecutive ones, which are close.
constexpr unsigned EXPOSED_RUN = 8;

// Sets a bit for each open point of an atom, in `words` words for each atom.
struct MarkOpen {
    static constexpr bool LISTS = true;
    unsigned* bits;
    unsigned words;

    __device__ inline void operator()(const shrake_rupley::Context& c, unsigned atom_index,
                                      unsigned block, unsigned living) const
    {
        using shrake_rupley::SLOTS;
        unsigned marks[SLOTS] = {};
        for (unsigned first = 0; first < living; first += 32) {
            const unsigned place = first + lane();
            const unsigned point = c.work.living[min(place, living - 1)];
#pragma unroll
            for (unsigned s = 0; s < SLOTS; ++s)
                marks[s] |= point / 32 == s ? 1u << point % 32 : 0u;
        }
        unsigned* out = bits + atom_index * words + block / 32;
#pragma unroll
        for (unsigned s = 0; s < SLOTS; ++s) {
            const unsigned all = warp_or(marks[s]);
            if (lane() == s && block / 32 + s < words)
                out[s] = all;
        }
        __syncwarp();
    }

    __device__ inline void atom(unsigned, unsigned long long) const {}
};

// Marks the exposed points of each atom: those that no other atom buries, of the model or of the
// atom's chain. One warp per atom; the warp of the first atom of a run takes the whole run. The
// header has the test points from index `first` on, as for sasa.
KERNEL(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
exposed_points(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
               const Atom* atoms, CELL_PARAMS, unsigned* bits, unsigned words, unsigned first,
               unsigned points, unsigned probe, unsigned own_chain)
{
    wait_for_dependencies();
    using namespace shrake_rupley;
    Workspace& work = warp_memory<Workspace, THREADS / 32>();
    each_warp(header, ATOMS, [&](unsigned atom_index) {
        const AtomTag tag = atoms[atom_index].tag;
        const auto is_same_chain = [&](unsigned index) {
            const AtomTag other = atoms[index].tag;
            return other != 0 && same_chain(other, tag);
        };
        const unsigned place_in_run = atom_index % EXPOSED_RUN;
        if (tag == 0 || (place_in_run > 0 && is_same_chain(atom_index - 1)))
            return;
        const unsigned next = atom_index + lane();
        const unsigned others = ~__ballot_sync(~0u, next < header[ATOMS] && is_same_chain(next));
        const unsigned count = min(unsigned(__ffs(others)) - 1, EXPOSED_RUN - place_in_run);
        const unsigned chain = tag_chain(tag), structure = chains[chain].structure;
        const Context context{work,
                              CELLS_OF_PARAMS,
                              structures[structure].atom_grid,
                              chain,
                              (const float*)header + first,
                              points,
                              int(probe),
                              own_chain ? chain : ALL_CHAINS};
        const ResidueSpan run{structure, chain, atom_index, (unsigned short)count, 0, 0};
        residue_areas<Others::NONE_OF_CHAIN>(context, run, atoms, MarkOpen{bits, words});
    });
}
