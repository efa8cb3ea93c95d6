// The work of benches/replay in CUDA C++, written by hand: what the engine is
// compared with. See scripts/compare_replay.sh.
//
//   nvcc -O3 -arch=native -o reference reference.cu
//   ./reference [--cases latency,host,ladder,period,large] [--reps N] [--millis N] [--samples N]
//   ./reference --serve
//
// It prints one line of JSON for each case, and fails on a wrong output; or it answers
// `tapeloop bench` as README.md says.

#include "reference.cuh"
#include "serve.cuh"

#include <cstdio>
#include <cstdlib>

namespace {

struct Options {
    std::string cases = "latency,host,ladder,period,large";
    int reps = 5;        // repetitions of a loop, of which the median counts
    double millis = 20;  // length of one
    int samples = 5000;  // of a latency
};

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    const size_t half = values.size() / 2;
    return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double percentile(const std::vector<double>& sorted, double part)
{
    return sorted[std::min(sorted.size() - 1, static_cast<size_t>(part * sorted.size()))];
}

// One line of JSON up to the figures.
void begin_line(const char* name, const Work& work, size_t slots, bool host_copies)
{
    std::printf("{\"who\":\"cpp\",\"case\":\"%s\",\"bytes\":%zu,\"bytes_down\":%zu,\"kernels\":%d,"
                "\"slots\":%zu,\"host_copies\":%s", name, work.up_bytes(), work.down_bytes(),
                work.kernels, slots, host_copies ? "true" : "false");
}

void end_line()
{
    std::printf("}\n");
    std::fflush(stdout);
}

void print_times(const char* prefix, std::vector<double> samples)
{
    std::sort(samples.begin(), samples.end());
    std::printf(",\"%sp50_ns\":%.0f,\"%sp90_ns\":%.0f,\"%sp99_ns\":%.0f", prefix,
                percentile(samples, 0.5), prefix, percentile(samples, 0.9), prefix,
                percentile(samples, 0.99));
}

void period(Device& device, const char* name, Mode mode, bool host_copies, const Options& options)
{
    device.check(mode, name);
    const long batches = batches_for(options.millis, device, mode, host_copies);
    std::vector<double> periods;
    for (int rep = 0; rep < options.reps; ++rep)
        periods.push_back(closed_loop(device, mode, host_copies, batches) / batches);
    device.check_left(mode, name);
    begin_line(name, device.work, device.slots.size(), host_copies);
    std::printf(",\"period_ns\":%.1f,\"min_ns\":%.1f,\"max_ns\":%.1f,\"batches\":%ld",
                median(periods), *std::min_element(periods.begin(), periods.end()),
                *std::max_element(periods.begin(), periods.end()), batches);
    end_line();
}

void run_period(const Options& options)
{
    Device device(Work{4096, 1, 12}, 4);
    for (bool host_copies : {false, true}) {
        period(device, "stream", Mode::Stream, host_copies, options);
        period(device, "graph", Mode::Graph, host_copies, options);
        period(device, "kernels_per_slot", Mode::KernelsPerSlot, host_copies, options);
        period(device, "kernels_per_stage", Mode::KernelsPerStage, host_copies, options);
        period(device, "mapped", Mode::Mapped, host_copies, options);
    }
}

void run_large(const Options& options)
{
    Device device(Work{1 << 20, 2, 12}, 3);
    Options longer = options;
    longer.millis *= 2;
    period(device, "stage_upload", Mode::Upload, false, longer);
    period(device, "stage_kernels", Mode::Kernels, false, longer);
    period(device, "stage_download", Mode::Download, false, longer);
    period(device, "graph", Mode::Graph, false, longer);
    period(device, "kernels_per_slot", Mode::KernelsPerSlot, false, longer);
    period(device, "kernels_per_stage", Mode::KernelsPerStage, false, longer);
    period(device, "graph", Mode::Graph, true, longer);
}

// Where the driver happens to put a stream's commands moves all latencies of that
// stream by up to 2 us, so one opening is one draw.
constexpr int OPENINGS = 9;

void sample_latency(Mode mode, const char* name, bool host_copies, int count,
                    std::vector<double>& samples)
{
    Device device(Work{4096, 1, 12}, 1);
    device.check(mode, name);
    Slot& slot = device.slots[0];
    for (int i = -count / 10; i < count; ++i) {
        const double start = now_ns();
        if (host_copies) slot.put_in(device.work);
        device.submit_unmarked(slot, mode);
        CHECK(cudaStreamSynchronize(slot.stream));
        if (host_copies) slot.take_out(device.work);
        if (i >= 0) samples.push_back(now_ns() - start);
    }
    device.check_left(mode, name);
}

void latency(const char* name, Mode mode, bool host_copies, const Options& options)
{
    std::vector<double> all, medians;
    for (int opening = 0; opening < OPENINGS; ++opening) {
        std::vector<double> samples;
        sample_latency(mode, name, host_copies, std::max(10, options.samples / OPENINGS), samples);
        all.insert(all.end(), samples.begin(), samples.end());
        medians.push_back(median(samples));
    }
    begin_line(name, Work{4096, 1, 12}, 1, host_copies);
    print_times("", all);
    std::printf(",\"opening_least_ns\":%.0f,\"opening_most_ns\":%.0f",
                *std::min_element(medians.begin(), medians.end()),
                *std::max_element(medians.begin(), medians.end()));
    end_line();
}

void run_latency(const Options& options)
{
    latency("latency_graph", Mode::Graph, false, options);
    latency("latency_mapped", Mode::Mapped, false, options);
    latency("latency_graph", Mode::Graph, true, options);
    latency("latency_mapped", Mode::Mapped, true, options);
    latency("latency_stream", Mode::Stream, false, options);
    latency("latency_kernels_per_slot", Mode::KernelsPerSlot, false, options);
}

// The calling thread's time for a launch and its mark, on an idle device.
void host(Device& device, const char* name, Mode mode, const Options& options)
{
    device.check(mode, name);
    Slot& slot = device.slots[0];
    std::vector<double> samples;
    const int count = std::max(1, options.samples / 5);
    for (int i = -count / 10; i < count; ++i) {
        const double start = now_ns();
        device.submit(slot, mode);
        const double took = now_ns() - start;
        spin(slot.done);
        if (i >= 0) samples.push_back(took);
    }
    device.check_left(mode, name);
    begin_line(name, device.work, 1, false);
    print_times("host_", samples);
    end_line();
}

void run_host(const Options& options)
{
    for (int kernels : {1, 3, 10, 30, 100}) {
        Device device(Work{4096, 1, kernels}, 1);
        host(device, "host_kernels", Mode::Kernels, options);
        host(device, "host_batch", Mode::Graph, options);
    }
}

// What it takes to change a graph that exists, in time of the calling thread.
template <class Change>
void change(Device& device, const char* name, int nodes, const Options& options, Change change)
{
    std::vector<double> samples;
    const int count = std::max(2, options.samples / 10) / 2 * 2;
    for (int i = 0; i < count; ++i) {
        const double start = now_ns();
        change(i % 2 == 0);
        samples.push_back(now_ns() - start);
    }
    // The last change set back what the one before changed.
    device.check(Mode::Graph, name);
    begin_line(name, device.work, 1, false);
    std::printf(",\"nodes\":%d", nodes);
    print_times("host_", samples);
    end_line();
}

void run_ladder(const Options& options)
{
    Device device(Work{4096, 1, 12}, 1);
    Slot& slot = device.slots[0];
    device.check(Mode::Graph, "ladder");
    size_t count = 0;
    CHECK(cudaGraphGetNodes(slot.batch_graph, nullptr, &count));
    std::vector<cudaGraphNode_t> nodes(count);
    CHECK(cudaGraphGetNodes(slot.batch_graph, nodes.data(), &count));
    cudaGraphNode_t kernel = nullptr;
    cudaGraphNode_t upload = nullptr;
    for (cudaGraphNode_t node : nodes) {
        cudaGraphNodeType type;
        CHECK(cudaGraphNodeGetType(node, &type));
        if (type == cudaGraphNodeTypeKernel) kernel = node;
        if (type != cudaGraphNodeTypeMemcpy) continue;
        cudaMemcpy3DParms copy;
        CHECK(cudaGraphMemcpyNodeGetParams(node, &copy));
        if (copy.srcPtr.ptr == slot.x_host) upload = node;
    }
    if (!kernel) fail("ladder", "the graph has no kernel");

    cudaKernelNodeParams params;
    CHECK(cudaGraphKernelNodeGetParams(kernel, &params));
    float other = 0.25f;
    void* changed[5];
    std::copy(params.kernelParams, params.kernelParams + 5, changed);
    changed[4] = &other;
    cudaKernelNodeParams other_params = params;
    other_params.kernelParams = changed;
    CHECK(cudaGraphExecKernelNodeSetParams(slot.batch, kernel, &other_params));
    if (device.outputs_are_right(slot, Mode::Graph)) fail("ladder", "new parameters had no effect");
    CHECK(cudaGraphExecKernelNodeSetParams(slot.batch, kernel, &params));

    change(device, "set_params_kernel", 1, options, [&](bool there) {
        const cudaKernelNodeParams& chosen = there ? other_params : params;
        CHECK(cudaGraphExecKernelNodeSetParams(slot.batch, kernel, &chosen));
    });
    const size_t bytes = device.work.up_bytes();
    const auto set_copy = [&](bool there) {
        CHECK(cudaGraphExecMemcpyNodeSetParams1D(slot.batch, upload, slot.x, slot.x_host,
                                                 there ? bytes / 2 : bytes,
                                                 cudaMemcpyHostToDevice));
    };
    if (upload) change(device, "set_params_copy", 1, options, set_copy);
    else std::fprintf(stderr, "set_params_copy left out: the upload was not found\n");
    change(device, "update_whole", device.work.kernels + 2, options, [&](bool there) {
        cudaGraph_t graph = device.capture(slot, Mode::Stream, there ? 0.25f : 0.5f);
        cudaGraphExecUpdateResultInfo info;
        CHECK(cudaGraphExecUpdate(slot.batch, graph, &info));
        CHECK(cudaGraphDestroy(graph));
    });
    change(device, "update_instantiate", device.work.kernels + 2, options, [&](bool) {
        cudaGraph_t graph = device.capture(slot, Mode::Stream, 0.5f);
        cudaGraphExec_t exec;
        CHECK(cudaGraphInstantiate(&exec, graph, 0));
        CHECK(cudaGraphDestroy(graph));
        CHECK(cudaGraphExecDestroy(slot.batch));
        slot.batch = exec;
    });
}

// The clocks of an idle card are low.
void warm_up()
{
    Device device(Work{4096, 1, 12}, 1);
    const double start = now_ns();
    while (now_ns() - start < 200e6) closed_loop(device, Mode::Graph, false, 1000);
}

void print_device()
{
    cudaDeviceProp properties;
    int driver = 0;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    CHECK(cudaDriverGetVersion(&driver));
    std::printf("{\"who\":\"cpp\",\"case\":\"device\",\"device\":\"%s\",\"driver\":%d,"
                "\"runtime\":%d", properties.name, driver, CUDART_VERSION);
    end_line();
}

Options parse(int argc, char** argv)
{
    Options options;
    for (int i = 1; i < argc; i += 2) {
        const std::string name = argv[i];
        const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
        if (value && name == "--cases") options.cases = value;
        else if (value && name == "--reps") options.reps = std::max(1, std::atoi(value));
        else if (value && name == "--millis") options.millis = std::max(1.0, std::atof(value));
        else if (value && name == "--samples") options.samples = std::max(20, std::atoi(value));
        else {
            std::fprintf(stderr,
                         "usage: %s [--cases a,b] [--reps N] [--millis N] [--samples N]\n"
                         "       %s --serve\n",
                         argv[0], argv[0]);
            std::exit(2);
        }
    }
    return options;
}

void run_cases(const Options& options)
{
    print_device();
    warm_up();
    const std::pair<const char*, void (*)(const Options&)> groups[] = {
        // Once a process has replayed on several streams at once, each batch on one
        // takes 2 us longer: latencies come first.
        {"latency", run_latency}, {"host", run_host},   {"ladder", run_ladder},
        {"period", run_period},   {"large", run_large},
    };
    for (const auto& [name, run] : groups)
        if (("," + options.cases + ",").find("," + std::string(name) + ",") != std::string::npos)
            run(options);
}

}  // namespace

int main(int argc, char** argv)
{
    const bool asked_to_serve = argc == 2 && std::string(argv[1]) == "--serve";
    const Options options = asked_to_serve ? Options{} : parse(argc, argv);
    try {
        // Waits spin, as the engine's do; before anything else touches the device.
        CHECK(cudaSetDeviceFlags(cudaDeviceScheduleSpin));
        CHECK(cudaSetDevice(0));
        if (asked_to_serve) serve();
        else run_cases(options);
    } catch (const std::exception& error) {
        if (asked_to_serve) refuse(error.what());
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
