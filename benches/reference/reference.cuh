// The work itself: slots with their memory, streams and graphs, and the closed loop over them.
#pragma once

#include "../../crates/bench/src/bench.cu"

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#define CHECK(call) check_result((call), #call, __FILE__, __LINE__)

inline void check_result(cudaError_t result, const char* call, const char* file, int line)
{
    if (result == cudaSuccess) return;
    const std::string place = std::string(file) + ":" + std::to_string(line);
    throw std::runtime_error(place + ": " + call + ": " + cudaGetErrorString(result));
}

inline double now_ns()
{
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

inline void spin(cudaEvent_t event)
{
    cudaError_t result;
    while ((result = cudaEventQuery(event)) == cudaErrorNotReady) {}
    CHECK(result);
}

// `n` floats down, `stride` times as many up, and a chain of kernels between them: `advance`
// with `steps` steps, or `step` if `steps` is 0.
struct Work {
    unsigned n;
    unsigned stride;
    int kernels;
    unsigned steps = 0;

    bool operator==(const Work& other) const
    {
        return n == other.n && stride == other.stride && kernels == other.kernels &&
               steps == other.steps;
    }

    size_t up_bytes() const { return size_t{n} * stride * sizeof(float); }
    size_t down_bytes() const { return size_t{n} * sizeof(float); }
};

constexpr unsigned BLOCK = 128;

enum class Mode {
    Stream,    // a call for each copy and kernel, on the slot's stream
    Graph,     // the whole batch as one graph
    Resident,  // the whole batch as the body of a loop on the device
};

// What a loop and the host share, in pinned memory: `ring` and `stop` are the host's to write, and
// have the number of the last batch and whether to end; `done` and `parked` are the device's, and
// have the last batch that ended, and the last one before the loop did.
struct Bell {
    alignas(128) volatile unsigned long long ring, stop;
    alignas(128) volatile unsigned long long done, parked;
};

__global__ void loop_begin(const Bell* bell, unsigned long long* batch) { *batch = bell->ring; }

// Ends a batch and waits for the next, for up to 1 ms.
__global__ void loop_turn(Bell* bell, unsigned long long* batch, cudaGraphConditionalHandle loop)
{
    const unsigned long long ended = *batch;
    __threadfence_system();
    bell->done = ended;
    unsigned long long since, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(since));
    for (;;) {
        unsigned long long ring, stop;
        asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(ring), "=l"(stop)
                     : "l"(&bell->ring)
                     : "memory");
        if (ring != ended) {
            __threadfence_system();
            *batch = ring;
            return;
        }
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        if (stop || now - since > 1000000) break;
    }
    bell->parked = ended;
    cudaGraphSetConditional(loop, 0);
}

struct Slot {
    float *x_host = nullptr, *y_host = nullptr;
    float *x = nullptr, *y = nullptr, *scratch[2] = {nullptr, nullptr};
    cudaStream_t stream = nullptr;
    cudaEvent_t done = nullptr;
    cudaGraphExec_t batch = nullptr;
    bool busy = false;

    // The loop on the device, if the mode has one.
    cudaGraphExec_t loop = nullptr;
    Bell* bell = nullptr;
    unsigned long long* loop_batch = nullptr;
    // The number of the last batch, and the first one since the last launch.
    unsigned long long rung = 0, launched = 0;

    void launch_if_parked()
    {
        const unsigned long long parked = bell->parked;
        if (launched > parked || parked >= rung) return;
        launched = rung;
        CHECK(cudaGraphLaunch(loop, stream));
    }

    void wait()
    {
        if (!loop) return spin(done);
        while (bell->done != rung) launch_if_parked();
        std::atomic_thread_fence(std::memory_order_acquire);
    }
};

class Device {
public:
    Work work;
    std::vector<Slot> slots;

    // Delegates first, so that the destructor runs if the body throws.
    Device(Work work, size_t count, Mode mode) : Device(work)
    {
        slots.resize(count);
        for (size_t i = 0; i < count; ++i) {
            open(slots[i], static_cast<unsigned>(i));
            if (mode == Mode::Resident) open_loop(slots[i]);
        }
    }

    Device(const Device&) = delete;

    // Results are not checked: after a failure some handles are null.
    ~Device()
    {
        for (Slot& slot : slots)
            if (slot.bell) slot.bell->stop = 1;
        cudaDeviceSynchronize();
        for (Slot& slot : slots) {
            if (slot.loop) cudaGraphExecDestroy(slot.loop);
            cudaFreeHost(slot.bell);
            cudaFree(slot.loop_batch);
            if (slot.batch) cudaGraphExecDestroy(slot.batch);
            if (slot.done) cudaEventDestroy(slot.done);
            if (slot.stream) cudaStreamDestroy(slot.stream);
            for (float* memory : {slot.x, slot.y, slot.scratch[0], slot.scratch[1]})
                cudaFree(memory);
            for (float* memory : {slot.x_host, slot.y_host}) cudaFreeHost(memory);
        }
        cudaGetLastError();
    }

    // Submits one batch, and records the event at its end.
    void submit(Slot& slot, Mode mode)
    {
        if (mode == Mode::Resident) {
            std::atomic_thread_fence(std::memory_order_release);
            slot.bell->ring = ++slot.rung;
            slot.launch_if_parked();
            return;
        }
        if (mode == Mode::Graph) CHECK(cudaGraphLaunch(slot.batch, slot.stream));
        else enqueue(slot);
        CHECK(cudaEventRecord(slot.done, slot.stream));
    }

private:
    explicit Device(Work work) : work(work) {}

    void open(Slot& slot, unsigned index)
    {
        CHECK(cudaMallocHost(&slot.x_host, work.up_bytes()));
        CHECK(cudaMallocHost(&slot.y_host, work.down_bytes()));
        CHECK(cudaMalloc(&slot.x, work.up_bytes()));
        for (float** memory : {&slot.y, &slot.scratch[0], &slot.scratch[1]})
            CHECK(cudaMalloc(memory, work.down_bytes()));
        CHECK(cudaStreamCreateWithFlags(&slot.stream, cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&slot.done, cudaEventDisableTiming));
        for (size_t i = 0; i < size_t{work.n} * work.stride; ++i)
            slot.x_host[i] = static_cast<float>((static_cast<unsigned>(i) * 7 + index * 13) % 1021);
        // Loads the kernels: CUDA may load a module at its first launch, which fails under capture.
        enqueue(slot);
        CHECK(cudaStreamSynchronize(slot.stream));
        cudaGraph_t graph;
        CHECK(cudaStreamBeginCapture(slot.stream, cudaStreamCaptureModeThreadLocal));
        enqueue(slot);
        CHECK(cudaStreamEndCapture(slot.stream, &graph));
        // Not uploaded: the first launch does that, and a graph that is uploaded but not launched
        // yet adds some 2 us to the other launches on its stream.
        CHECK(cudaGraphInstantiate(&slot.batch, graph, 0));
        CHECK(cudaGraphDestroy(graph));
    }

    // A graph of a WHILE node, whose body is the batch and the kernel that waits for the next.
    void open_loop(Slot& slot)
    {
        CHECK(cudaMallocHost(&slot.bell, sizeof(Bell)));
        *slot.bell = Bell{};
        CHECK(cudaMalloc(&slot.loop_batch, sizeof(*slot.loop_batch)));
        cudaGraph_t whole;
        CHECK(cudaGraphCreate(&whole, 0));
        cudaGraphConditionalHandle handle;
        CHECK(cudaGraphConditionalHandleCreate(&handle, whole, 1, cudaGraphCondAssignDefault));
        cudaGraphNode_t begin;
        void* begin_args[] = {&slot.bell, &slot.loop_batch};
        cudaKernelNodeParams begin_params = {};
        begin_params.func = reinterpret_cast<void*>(&loop_begin);
        begin_params.gridDim = begin_params.blockDim = dim3(1);
        begin_params.kernelParams = begin_args;
        CHECK(cudaGraphAddKernelNode(&begin, whole, nullptr, 0, &begin_params));
        cudaGraphNodeParams params = {};
        params.type = cudaGraphNodeTypeConditional;
        params.conditional.handle = handle;
        params.conditional.type = cudaGraphCondTypeWhile;
        params.conditional.size = 1;
        cudaGraphNode_t node;
#if CUDART_VERSION >= 13000
        CHECK(cudaGraphAddNode(&node, whole, &begin, nullptr, 1, &params));
#else
        CHECK(cudaGraphAddNode(&node, whole, &begin, 1, &params));
#endif
        const cudaGraph_t body = params.conditional.phGraph_out[0];
        CHECK(cudaStreamBeginCaptureToGraph(slot.stream, body, nullptr, nullptr, 0,
                                            cudaStreamCaptureModeThreadLocal));
        enqueue(slot);
        void* turn_args[] = {&slot.bell, &slot.loop_batch, &handle};
        CHECK(cudaLaunchKernel(reinterpret_cast<const void*>(&loop_turn), dim3(1), dim3(1),
                               turn_args, 0, slot.stream));
        CHECK(cudaStreamEndCapture(slot.stream, nullptr));
        CHECK(cudaGraphInstantiate(&slot.loop, whole, 0));
        CHECK(cudaGraphDestroy(whole));
    }

    // Both copies and the kernels between them, on the slot's stream.
    void enqueue(Slot& slot)
    {
        CHECK(cudaMemcpyAsync(slot.x, slot.x_host, work.up_bytes(), cudaMemcpyHostToDevice,
                              slot.stream));
        const float* in = slot.x;
        for (int k = 0; k < work.kernels; ++k) {
            float* out = k + 1 == work.kernels ? slot.y : slot.scratch[k % 2];
            if (work.steps) launch_advance(slot, in, out);
            else launch_step(slot, k, in, out);
            in = out;
        }
        CHECK(cudaMemcpyAsync(slot.y_host, slot.y, work.down_bytes(), cudaMemcpyDeviceToHost,
                              slot.stream));
    }

    void launch_step(Slot& slot, int k, const float* in, float* out)
    {
        unsigned n = work.n;
        unsigned stride = k == 0 ? work.stride : 1;
        float a = k % 2 == 0 ? 2.0f : 0.5f;
        void* args[] = {&in, &out, &n, &stride, &a};
        launch(reinterpret_cast<const void*>(&step), work.n, slot, args);
    }

    void launch_advance(Slot& slot, const float* in, float* out)
    {
        unsigned n = work.n;
        unsigned steps = work.steps;
        float a = 2.0f, b = 1.0f, c = 0.5f, d = 0.5f;
        void* args[] = {&in, &out, &n, &steps, &a, &b, &c, &d};
        launch(reinterpret_cast<const void*>(&advance), (work.n + 3) / 4, slot, args);
    }

    void launch(const void* kernel, unsigned threads, Slot& slot, void** args)
    {
        const dim3 grid((threads + BLOCK - 1) / BLOCK);
        CHECK(cudaLaunchKernel(kernel, grid, dim3(BLOCK), args, 0, slot.stream));
    }
};

// Runs batches through all slots in turn, each as soon as its slot is done. Returns nanoseconds.
inline double closed_loop(Device& device, Mode mode, long batches)
{
    std::vector<Slot>& slots = device.slots;
    const double start = now_ns();
    for (long batch = 0; batch < batches; ++batch) {
        Slot& slot = slots[batch % slots.size()];
        if (slot.busy) slot.wait();
        device.submit(slot, mode);
        slot.busy = true;
    }
    for (Slot& slot : slots) {
        if (slot.busy) slot.wait();
        slot.busy = false;
    }
    return now_ns() - start;
}

// Warms up for about `millis`, and returns how many batches take that long: at least one a slot.
inline long batches_for(double millis, Device& device, Mode mode)
{
    const long least = static_cast<long>(device.slots.size());
    long batches = 4 * least;
    double took = closed_loop(device, mode, batches);
    while (took < millis * 1e6 / 2) {
        batches *= 2;
        took = closed_loop(device, mode, batches);
    }
    return std::max(least, static_cast<long>(millis * 1e6 / (took / batches)));
}
