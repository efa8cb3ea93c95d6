#include "interfaces.cuh"
#include "lee_richards.cuh"

// Computes what each partner of a residue buries, as interface_areas does, by Lee and Richards; one warp
// per residue.
KERNEL(shrake_rupley::THREADS, shrake_rupley::RESIDENT)
interface_areas_slices(const unsigned* header, const StructureSpan* structures,
                       const ResidueSpan* residues, const Atom* atoms, CELL_PARAMS,
                       const unsigned* rooms, const int* ends, const unsigned* partners,
                       unsigned long long* buried, unsigned slices, unsigned probe)
{
    wait_for_dependencies();
    write_partner_areas<lee_richards::LeeRichards>(
        header, structures, residues, atoms, CELLS_OF_PARAMS, rooms, ends, partners, buried, 0,
        slices, probe);
}
