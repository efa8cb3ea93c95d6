// The work itself: slots with their memory, streams and graphs, and the ways to
// give a batch to the device.
#pragma once

#include "../../kernels/bench.cu"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#define CHECK(call) check_result((call), #call, __FILE__, __LINE__)

inline void check_result(cudaError_t result, const char* call, const char* file, int line)
{
    if (result == cudaSuccess) return;
    const std::string place = std::string(file) + ":" + std::to_string(line);
    throw std::runtime_error(place + ": " + call + ": " + cudaGetErrorString(result));
}

[[noreturn]] inline void fail(const char* name, const char* message)
{
    throw std::runtime_error(std::string(name) + ": " + message);
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

// n elements down, stride times as many up, and a chain of kernels between: of `step`,
// or of `advance` where there are steps.
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

// The factor of the k-th `step`; the last one's can be another.
inline float factor(int k) { return k % 2 == 0 ? 2.0f : 0.5f; }

enum class Mode {
    Stream,           // a call for each copy and kernel, on the slot's stream
    Graph,            // the whole batch as one graph
    KernelsPerSlot,   // copies as calls on the slot's stream around a graph of the kernels
    KernelsPerStage,  // the same on three streams that all slots share
    Mapped,           // one graph whose kernels read and write pinned memory
    Upload,           // one stage alone: the copy up,
    Kernels,          // the graph of the kernels,
    Download,         // the copy down
};

inline bool is_stage(Mode mode)
{
    return mode == Mode::Upload || mode == Mode::Kernels || mode == Mode::Download;
}

struct Slot {
    float *x_host = nullptr, *y_host = nullptr;
    float *x = nullptr, *y = nullptr, *scratch[2] = {nullptr, nullptr};
    cudaStream_t stream = nullptr;
    cudaEvent_t uploaded = nullptr, computed = nullptr, done = nullptr;
    cudaGraph_t batch_graph = nullptr;
    cudaGraphExec_t batch = nullptr, kernels = nullptr, mapped = nullptr;
    std::vector<float> input, output, expected;
    bool busy = false;

    // What any program does that has its data elsewhere.
    void put_in(const Work& work) { std::memcpy(x_host, input.data(), work.up_bytes()); }
    void take_out(const Work& work) { std::memcpy(output.data(), y_host, work.down_bytes()); }
};

class Device {
public:
    Work work;
    std::vector<Slot> slots;

    // As the other constructor is done by then, what this one fails at is cleared away.
    Device(Work work, size_t count) : Device(work)
    {
        for (cudaStream_t& stream : stages_)
            CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        slots.resize(count);
        for (size_t i = 0; i < count; ++i) open(slots[i], static_cast<unsigned>(i));
    }

    Device(const Device&) = delete;

    // Unchecked, since after a failure some of it is not there.
    ~Device()
    {
        cudaDeviceSynchronize();
        for (Slot& slot : slots) {
            for (cudaGraphExec_t exec : {slot.batch, slot.kernels, slot.mapped})
                if (exec) cudaGraphExecDestroy(exec);
            if (slot.batch_graph) cudaGraphDestroy(slot.batch_graph);
            for (cudaEvent_t event : {slot.uploaded, slot.computed, slot.done})
                if (event) cudaEventDestroy(event);
            if (slot.stream) cudaStreamDestroy(slot.stream);
            for (float* memory : {slot.x, slot.y, slot.scratch[0], slot.scratch[1]})
                cudaFree(memory);
            for (float* memory : {slot.x_host, slot.y_host}) cudaFreeHost(memory);
        }
        for (cudaStream_t stream : stages_)
            if (stream) cudaStreamDestroy(stream);
        cudaGetLastError();
    }

    // Gives one batch to the device, and marks its end.
    void submit(Slot& slot, Mode mode)
    {
        submit_unmarked(slot, mode);
        CHECK(cudaEventRecord(slot.done, mode == Mode::KernelsPerStage ? stages_[2] : slot.stream));
    }

    void submit_unmarked(Slot& slot, Mode mode)
    {
        const cudaStream_t stream = slot.stream;
        switch (mode) {
        case Mode::Stream: enqueue(slot, mode, 0.0f); break;
        case Mode::Graph: CHECK(cudaGraphLaunch(slot.batch, stream)); break;
        case Mode::Mapped: CHECK(cudaGraphLaunch(slot.mapped, stream)); break;
        case Mode::Kernels: CHECK(cudaGraphLaunch(slot.kernels, stream)); break;
        case Mode::Upload: upload(slot, stream); break;
        case Mode::Download: download(slot, stream); break;
        case Mode::KernelsPerSlot:
            upload(slot, stream);
            CHECK(cudaGraphLaunch(slot.kernels, stream));
            download(slot, stream);
            break;
        case Mode::KernelsPerStage:
            upload(slot, stages_[0]);
            CHECK(cudaEventRecord(slot.uploaded, stages_[0]));
            CHECK(cudaStreamWaitEvent(stages_[1], slot.uploaded, 0));
            CHECK(cudaGraphLaunch(slot.kernels, stages_[1]));
            CHECK(cudaEventRecord(slot.computed, stages_[1]));
            CHECK(cudaStreamWaitEvent(stages_[2], slot.computed, 0));
            download(slot, stages_[2]);
            break;
        }
    }

    // The graph of a batch; `last` unless 0 is the factor of its last kernel.
    cudaGraph_t capture(Slot& slot, Mode mode, float last)
    {
        cudaGraph_t graph;
        CHECK(cudaStreamBeginCapture(slot.stream, cudaStreamCaptureModeThreadLocal));
        enqueue(slot, mode, last);
        CHECK(cudaStreamEndCapture(slot.stream, &graph));
        return graph;
    }

    // Runs one batch of every slot from its inputs, and fails on a wrong output.
    // It leaves outputs that cannot be right, for check_left after a loop.
    void check(Mode mode, const char* name)
    {
        for (Slot& slot : slots) {
            if (!outputs_are_right(slot, mode)) fail(name, "wrong outputs");
            std::memset(slot.y_host, 0xFF, work.down_bytes());
        }
    }

    bool outputs_are_right(Slot& slot, Mode mode)
    {
        slot.put_in(work);
        std::memset(slot.y_host, 0xFF, work.down_bytes());
        CHECK(cudaMemset(slot.y, 0xFF, work.down_bytes()));
        CHECK(cudaDeviceSynchronize());
        // A stage alone is checked with the others around it.
        submit(slot, is_stage(mode) ? Mode::KernelsPerSlot : mode);
        CHECK(cudaDeviceSynchronize());
        return is_right(slot);
    }

    // Fails if what a loop left is wrong.
    void check_left(Mode mode, const char* name)
    {
        CHECK(cudaDeviceSynchronize());
        if (is_stage(mode)) return check(mode, name);
        for (Slot& slot : slots)
            if (!is_right(slot)) fail(name, "wrong outputs after the loop");
    }

private:
    cudaStream_t stages_[3] = {nullptr, nullptr, nullptr};

    explicit Device(Work work) : work(work) {}

    bool is_right(const Slot& slot) const
    {
        return std::memcmp(slot.y_host, slot.expected.data(), work.down_bytes()) == 0;
    }

    void open(Slot& slot, unsigned index)
    {
        CHECK(cudaMallocHost(&slot.x_host, work.up_bytes()));
        CHECK(cudaMallocHost(&slot.y_host, work.down_bytes()));
        CHECK(cudaMalloc(&slot.x, work.up_bytes()));
        for (float** memory : {&slot.y, &slot.scratch[0], &slot.scratch[1]})
            CHECK(cudaMalloc(memory, work.down_bytes()));
        CHECK(cudaStreamCreateWithFlags(&slot.stream, cudaStreamNonBlocking));
        for (cudaEvent_t* event : {&slot.uploaded, &slot.computed, &slot.done})
            CHECK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
        slot.input.resize(size_t{work.n} * work.stride);
        for (unsigned i = 0; i < slot.input.size(); ++i)
            slot.input[i] = static_cast<float>((i * 7 + index * 13) % 1021);
        slot.output.resize(work.n);
        slot.expected.resize(work.n);
        for (unsigned i = 0; i < work.n; ++i) {
            float value = slot.input[size_t{i} * work.stride];
            for (int k = 0; k < work.kernels; ++k)
                value = work.steps ? value + static_cast<float>(work.steps)
                                   : value * factor(k) + 1.0f;
            slot.expected[i] = value;
        }
        // A kernel that is loaded at its first use must not be so under capture.
        enqueue(slot, Mode::Stream, 0.0f);
        CHECK(cudaStreamSynchronize(slot.stream));
        slot.batch_graph = capture(slot, Mode::Stream, 0.0f);
        slot.batch = instantiate(slot.batch_graph);
        for (auto [exec, mode] :
             {std::pair{&slot.kernels, Mode::Kernels}, {&slot.mapped, Mode::Mapped}}) {
            cudaGraph_t graph = capture(slot, mode, 0.0f);
            *exec = instantiate(graph);
            CHECK(cudaGraphDestroy(graph));
        }
    }

    // Not uploaded: that is part of the first launch, and a graph that is uploaded
    // and not launched yet adds some 2 us to the others of its stream.
    cudaGraphExec_t instantiate(cudaGraph_t graph)
    {
        cudaGraphExec_t exec;
        CHECK(cudaGraphInstantiate(&exec, graph, 0));
        return exec;
    }

    void upload(Slot& slot, cudaStream_t stream)
    {
        CHECK(cudaMemcpyAsync(slot.x, slot.x_host, work.up_bytes(), cudaMemcpyHostToDevice,
                              stream));
    }

    void download(Slot& slot, cudaStream_t stream)
    {
        CHECK(cudaMemcpyAsync(slot.y_host, slot.y, work.down_bytes(), cudaMemcpyDeviceToHost,
                              stream));
    }

    // Every copy and kernel by itself on the slot's stream. Under capture, `mode`
    // says what of it: Stream all, Kernels no copies, Mapped none either.
    void enqueue(Slot& slot, Mode mode, float last)
    {
        const bool mapped = mode == Mode::Mapped;
        if (mode == Mode::Stream) upload(slot, slot.stream);
        const float* in = mapped ? slot.x_host : slot.x;
        for (int k = 0; k < work.kernels; ++k) {
            const bool is_last = k + 1 == work.kernels;
            float* out = !is_last ? slot.scratch[k % 2] : mapped ? slot.y_host : slot.y;
            if (work.steps) launch_advance(slot, in, out);
            else launch_step(slot, k, is_last && last != 0.0f ? last : factor(k), in, out);
            in = out;
        }
        if (mode == Mode::Stream) download(slot, slot.stream);
    }

    void launch_step(Slot& slot, int k, float a, const float* in, float* out)
    {
        unsigned n = work.n;
        unsigned stride = k == 0 ? work.stride : 1;
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

// Batches through all slots in turn, each as soon as its slot is done; returns
// nanoseconds.
inline double closed_loop(Device& device, Mode mode, bool host_copies, long batches)
{
    std::vector<Slot>& slots = device.slots;
    const double start = now_ns();
    for (long batch = 0; batch < batches; ++batch) {
        Slot& slot = slots[batch % slots.size()];
        if (slot.busy) {
            spin(slot.done);
            if (host_copies) slot.take_out(device.work);
        }
        if (host_copies) slot.put_in(device.work);
        device.submit(slot, mode);
        slot.busy = true;
    }
    for (Slot& slot : slots) {
        if (!slot.busy) continue;
        spin(slot.done);
        if (host_copies) slot.take_out(device.work);
        slot.busy = false;
    }
    return now_ns() - start;
}

// Warms up for as long, and returns how many batches take `millis`; no slot is left out.
inline long batches_for(double millis, Device& device, Mode mode, bool host_copies)
{
    const long least = static_cast<long>(device.slots.size());
    long batches = 4 * least;
    double took = closed_loop(device, mode, host_copies, batches);
    while (took < millis * 1e6 / 2) {
        batches *= 2;
        took = closed_loop(device, mode, host_copies, batches);
    }
    return std::max(least, static_cast<long>(millis * 1e6 / (took / batches)));
}
