#include "sheets.cuh"
#include "work.cuh"

// Joins the trees of the residues that ladders have bridges of, one thread per residue: a tree is a
// sheet. Bulges join nothing.
KERNEL(256)
sheet_join(const unsigned* header, const StructureSpan* structures, const unsigned* keys,
           unsigned* parents /* updated */)
{
    wait_for_dependencies();
    each_thread(header, RESIDUES, [&](unsigned residue) {
        for (unsigned which = 0; which < BRIDGES_MAX; ++which) {
            const unsigned key = keys[BRIDGES_MAX * residue + which];
            if (key != 0)
                join(parents, residue, first_residue(key));
        }
    });
}
