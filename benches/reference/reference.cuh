// The work itself: slots with their memory, streams and graphs, and the closed loop over them.
#pragma once

#include "../../kernels/bench.cu"

#include <cuda_runtime.h>

#include <algorithm>
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
    Stream,  // a call for each copy and kernel, on the slot's stream
    Graph,   // the whole batch as one graph
};

struct Slot {
    float *x_host = nullptr, *y_host = nullptr;
    float *x = nullptr, *y = nullptr, *scratch[2] = {nullptr, nullptr};
    cudaStream_t stream = nullptr;
    cudaEvent_t done = nullptr;
    cudaGraphExec_t batch = nullptr;
    bool busy = false;
};

class Device {
public:
    Work work;
    std::vector<Slot> slots;

    // Delegates first, so that the destructor runs if the body throws.
    Device(Work work, size_t count) : Device(work)
    {
        slots.resize(count);
        for (size_t i = 0; i < count; ++i) open(slots[i], static_cast<unsigned>(i));
    }

    Device(const Device&) = delete;

    // Results are not checked: after a failure some handles are null.
    ~Device()
    {
        cudaDeviceSynchronize();
        for (Slot& slot : slots) {
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
        if (slot.busy) spin(slot.done);
        device.submit(slot, mode);
        slot.busy = true;
    }
    for (Slot& slot : slots) {
        if (slot.busy) spin(slot.done);
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
