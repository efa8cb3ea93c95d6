// The fused kernel calls all other kernels as device functions: each block runs all steps of a
// batch for one structure, in a single launch. A text that includes this file first defines FUSED,
// includes the files of the kernels, and lists the kernels as STEPS(STEP) in the order of their
// numbers (src/features/image.rs).
enum Number {
#define STEP(name) STEP_##name,
    STEPS(STEP)
#undef STEP
};

// The number of values: buffer addresses and numbers that steps take as arguments. They are the
// parameters of `fused`, eight for each letter.
constexpr unsigned VALUES = 208;
// The longest program in bytes.
constexpr unsigned PROGRAM_MAX = 2048;

template <typename T> __device__ inline T value_of(unsigned long long bits)
{
    T value;
    memcpy(&value, &bits, sizeof(T));
    return value;
}

template <unsigned... At> struct Indices {};
template <unsigned N, unsigned... At> struct Count : Count<N - 1, N - 1, At...> {};
template <unsigned... At> struct Count<0, At...> { typedef Indices<At...> Type; };

template <auto function, typename... Params, unsigned... At>
__device__ inline unsigned call(void (*)(Params...), Indices<At...>,
                                const unsigned long long* values, const unsigned char* operands)
{
    function(value_of<Params>(values[operands[At]])...);
    return sizeof...(Params);
}

// Calls the function with a value for each operand, and returns the number of operands.
template <auto function, typename... Params>
__device__ inline unsigned run(void (*signature)(Params...), const unsigned long long* values,
                               const unsigned char* operands)
{
    return call<function>(signature, typename Count<sizeof...(Params)>::Type(), values, operands);
}

// Eight parameters, and their indices among the values.
#define EIGHT(v)                                                                          \
    unsigned long long v##0, unsigned long long v##1, unsigned long long v##2,            \
        unsigned long long v##3, unsigned long long v##4, unsigned long long v##5,        \
        unsigned long long v##6, unsigned long long v##7
#define KEEP(v, first)                                                                    \
    values[first] = v##0, values[first + 1] = v##1, values[first + 2] = v##2,             \
    values[first + 3] = v##3, values[first + 4] = v##4, values[first + 5] = v##5,         \
    values[first + 6] = v##6, values[first + 7] = v##7

// Runs a program for each structure, one block per structure. The header has the program as
// `length` bytes from index `program` on: for each step its number and, for each parameter, an
// operand, which is the index of the value to pass. Value `structures` is the spans of structures.
extern "C" __global__ void __launch_bounds__(BLOCK)
fused(const unsigned* header, unsigned structures, unsigned program, unsigned length,
      EIGHT(a), EIGHT(b), EIGHT(c), EIGHT(d), EIGHT(e), EIGHT(f), EIGHT(g), EIGHT(h),
      EIGHT(i), EIGHT(j), EIGHT(k), EIGHT(l), EIGHT(m), EIGHT(n), EIGHT(o), EIGHT(p),
      EIGHT(q), EIGHT(r), EIGHT(s), EIGHT(t), EIGHT(u), EIGHT(v), EIGHT(w), EIGHT(x),
      EIGHT(y), EIGHT(z))
{
    if (blockIdx.x >= header[STRUCTURES])
        return;
    __shared__ unsigned long long values[VALUES];
    __shared__ unsigned code[PROGRAM_MAX / 4];
    for (unsigned word = threadIdx.x; word < (length + 3) / 4; word += BLOCK)
        code[word] = header[program + word];
    if (threadIdx.x == 0) {
        KEEP(a, 0); KEEP(b, 8); KEEP(c, 16); KEEP(d, 24); KEEP(e, 32);
        KEEP(f, 40); KEEP(g, 48); KEEP(h, 56); KEEP(i, 64); KEEP(j, 72);
        KEEP(k, 80); KEEP(l, 88); KEEP(m, 96); KEEP(n, 104); KEEP(o, 112);
        KEEP(p, 120); KEEP(q, 128); KEEP(r, 136); KEEP(s, 144); KEEP(t, 152);
        KEEP(u, 160); KEEP(v, 168); KEEP(w, 176); KEEP(x, 184);
        KEEP(y, 192); KEEP(z, 200);
        const StructureSpan& span = ((const StructureSpan*)values[structures])[blockIdx.x];
        const auto range = [](unsigned axis, unsigned begin, unsigned count) {
            begins[axis] = begin;
            ends[axis] = begin + count;
        };
        range(RESIDUES, span.residue_start, span.residue_count);
        range(ATOMS, span.atom_start, span.atom_count + span.ligand_atom_count);
        range(STRUCTURES, blockIdx.x, 1);
        range(TILES, span.tile_start, (span.residue_count + TILE - 1) / TILE);
        range(CHAINS, span.chain_start, span.chain_count);
        range(LIGANDS, span.ligand_start, span.ligand_count);
    }
    __syncthreads();
    const unsigned char* bytes = (const unsigned char*)code;
    for (unsigned position = 0; position < length; __syncthreads()) {
        const unsigned number = bytes[position++];
        switch (number) {
#define STEP(name)                                                                        \
    case STEP_##name:                                                                     \
        position += run<&name>(&name, values, bytes + position);                          \
        break;
            STEPS(STEP)
#undef STEP
        }
    }
}
