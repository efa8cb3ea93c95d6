// The kernels of a loop that replays a graph on the device. `resident.ptx` is what nvcc makes of
// this:
//
//     nvcc -rdc=true -ptx -arch=compute_75 -o - resident.cu | sed 's/^\.version .*/.version 8.3/' > resident.ptx
//
// The driver links the device runtime's cudaGraphSetConditional by itself, since CUDA 12.3.

using u64 = unsigned long long;

// The layout of `HostWords` and `DeviceWords` in pinned_words.rs.
struct HostWords {
    u64 ring;
    u64 stop;
};
struct DeviceWords {
    u64 done;
    u64 parked;
    // When the last batch began and ended, in nanoseconds of the device's clock.
    u64 begun_ns;
    u64 ended_ns;
};

// The batch that runs, in device memory: what device_loop.rs has as `batch`.
struct Batch {
    u64 number;
    u64 begun_ns;
};

// The argument of both kernels: `LoopArgs` in device_loop.rs.
struct Loop {
    const HostWords* host;
    DeviceWords* device;
    Batch* batch;
    u64 idle_ns;
    cudaGraphConditionalHandle condition;
};

// Both words in one access of the host's memory.
__device__ inline HostWords look(const HostWords* words)
{
    HostWords seen;
    asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(seen.ring), "=l"(seen.stop)
                 : "l"(words)
                 : "memory");
    return seen;
}

__device__ inline u64 now_ns()
{
    u64 ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

__device__ inline void store(u64* word, u64 value)
{
    *(volatile u64*)word = value;
}

// Notes the batch that begins now. Its data is read after its number.
__device__ inline void take(const Loop& loop, u64 number)
{
    __threadfence_system();
    *loop.batch = {number, now_ns()};
}

// Takes the batch that the loop was launched for.
extern "C" __global__ void tapeloop_loop_begin(const __grid_constant__ Loop loop)
{
    take(loop, look(loop.host).ring);
}

// Runs at the end of each batch: announces it, and waits for the next one. The loop goes on with
// that batch, or ends.
extern "C" __global__ void tapeloop_loop_turn(const __grid_constant__ Loop loop)
{
    const Batch batch = *loop.batch;
    const u64 ended_ns = now_ns();
    store(&loop.device->begun_ns, batch.begun_ns);
    store(&loop.device->ended_ns, ended_ns);
    // The results and the times are visible before the announcement.
    __threadfence_system();
    store(&loop.device->done, batch.number);
    for (;;) {
        const HostWords seen = look(loop.host);
        if (seen.ring != batch.number)
            return take(loop, seen.ring);
        if (seen.stop || now_ns() - ended_ns > loop.idle_ns)
            break;
    }
    __threadfence_system();
    store(&loop.device->parked, batch.number);
    cudaGraphSetConditional(loop.condition, 0);
}
