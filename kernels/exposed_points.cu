#include "shrake_rupley.cuh"
#include "work.cuh"

// The most atoms that a warp takes: consecutive ones, which are close.
constexpr unsigned EXPOSED_RUN = 8;

// Sets a bit for each open point of an atom, in `words` words for each atom.
struct MarkOpen {
    static constexpr bool LISTS = true;
    unsigned* bits;
    unsigned words;

    __device__ inline void operator()(const shrake_rupley::Context& c, unsigned own, unsigned block,
                                      unsigned living) const
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
        unsigned* out = bits + own * words + block / 32;
#pragma unroll
        for (unsigned s = 0; s < SLOTS; ++s) {
            const unsigned all = warp_or(marks[s]);
            if (lane() == s && block / 32 + s < words)
                out[s] = all;
        }
        __syncwarp();
    }
};

// Marks the exposed points of each atom: those that no other atom buries, of the model or of the
// atom's chain. One warp per atom; that of the first atom of a run does the work of the run. The
// header has the test points from index `first` on, as for sasa.
KERNEL(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
exposed_points(const unsigned* header, const StructureSpan* structures, const ChainSpan* chains,
               const Atom* atoms, CELL_PARAMS, unsigned* bits, unsigned words, unsigned first,
               unsigned points, unsigned probe, unsigned own_chain)
{
    using namespace shrake_rupley;
    Workspace& work = warp_memory<Workspace, THREADS / 32>();
    each_warp(header, ATOMS, [&](unsigned own) {
        const AtomTag tag = atoms[own].tag;
        const auto of_chain = [&](unsigned at) {
            const AtomTag other = atoms[at].tag;
            return other != 0 && same_chain(other, tag);
        };
        const unsigned place = own % EXPOSED_RUN;
        if (tag == 0 || (place > 0 && of_chain(own - 1)))
            return;
        const unsigned next = own + lane();
        const unsigned others = ~__ballot_sync(~0u, next < header[ATOMS] && of_chain(next));
        const unsigned count = min(unsigned(__ffs(others)) - 1, EXPOSED_RUN - place);
        const unsigned chain = tag_chain(tag), structure = chains[chain].structure;
        const Context context{work,
                              CELLS_OF_PARAMS,
                              structures[structure].atom_grid,
                              chain,
                              (const float*)header + first,
                              points,
                              int(probe),
                              own_chain ? chain : ALL_CHAINS};
        const ResidueSpan run{structure, chain, own, (unsigned short)count, 0, 0};
        residue_areas<Others::NONE_OF_CHAIN>(context, run, atoms, MarkOpen{bits, words});
    });
}
