// Keys of ladders. A ladder's key is 1 + BRIDGES_MAX times the residue of its first bridge, plus the
// place of the bridge among those of the residue; 0 stands for no ladder. The order of keys is the
// order of ladders: by first residue, then by its partner.
#pragma once
#include "forest.cuh"
#include "ladders.cuh"

__device__ inline unsigned ladder_key(unsigned residue, unsigned which)
{
    return 1 + BRIDGES_MAX * residue + which;
}

// The residue of a ladder's first bridge.
__device__ inline unsigned first_residue(unsigned key) { return (key - 1) / BRIDGES_MAX; }
