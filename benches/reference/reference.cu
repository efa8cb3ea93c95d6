// The work of `tapeloop bench` in CUDA C++, to compare the engine with. It answers requests on
// standard input, as README.md says.
//
//   nvcc -O3 -std=c++17 -arch=native -rdc=true -o reference reference.cu -lcudadevrt
//   ./reference --serve

#include "reference.cuh"

#include <cctype>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>

namespace {

// A value of the protocol, which has no spaces.
std::string as_value(std::string text)
{
    for (char& letter : text)
        if (std::isspace(static_cast<unsigned char>(letter))) letter = '_';
    return text;
}

void refuse(const std::string& reason)
{
    std::cout << "no reason=" << as_value(reason) << std::endl;
}

struct Request {
    std::string what;
    std::map<std::string, std::string> values;

    explicit Request(const std::string& line)
    {
        std::istringstream words(line);
        words >> what;
        for (std::string word; words >> word;) {
            const size_t end = word.find('=');
            if (end == std::string::npos) throw std::runtime_error(word + " has no value");
            values[word.substr(0, end)] = word.substr(end + 1);
        }
    }

    const std::string& text(const std::string& name) const
    {
        const auto found = values.find(name);
        if (found == values.end()) throw std::runtime_error(name + " is missing");
        return found->second;
    }

    // A size: it fits an int and is not 0.
    unsigned number(const std::string& name) const
    {
        const std::string& value = text(name);
        const bool digits = value.find_first_not_of("0123456789") == std::string::npos;
        const unsigned number = digits && value.size() < 10 ? std::stoul("0" + value) : 0;
        if (number == 0) throw std::runtime_error(name + "=" + value + " is out of range");
        return number;
    }
};

Work work_of(const Request& request)
{
    const std::string& workload = request.text("workload");
    Work work{request.number("n"), request.number("stride"),
              static_cast<int>(request.number("kernels"))};
    if (workload == "advance") work.steps = request.number("steps");
    else if (workload != "chain") throw std::runtime_error("no workload is called " + workload);
    if (work.steps && work.stride != 1) throw std::runtime_error("advance has stride=1");
    // The kernels index with 32 bits.
    if ((uint64_t{work.n} * work.stride) >> 32)
        throw std::runtime_error("n * stride is out of range");
    return work;
}

Mode mode_of(const Request& request)
{
    const std::string& mode = request.text("mode");
    if (mode == "graph") return Mode::Graph;
    if (mode == "stream") return Mode::Stream;
    if (mode == "resident") return Mode::Resident;
    throw std::runtime_error("no mode is called " + mode);
}

// FNV-1a of all outputs, slot by slot.
uint64_t hash_of(const Device& device)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (const Slot& slot : device.slots) {
        const auto* bytes = reinterpret_cast<const unsigned char*>(slot.y_host);
        for (size_t i = 0; i < device.work.down_bytes(); ++i)
            hash = (hash ^ bytes[i]) * 0x100000001b3;
    }
    return hash;
}

// Measures points. The last point stays set up, so that asking for it again is cheap.
class Points {
public:
    void answer(const Request& request)
    {
        if (request.what != "period") throw std::runtime_error("no request is " + request.what);
        const Work work = work_of(request);
        const size_t slots = request.number("slots");
        const Mode mode = mode_of(request);
        const double millis = request.number("millis");
        // Taken out, so that a device that fails is dropped.
        std::unique_ptr<Device> device = std::move(device_);
        if (!device || !(device->work == work) || device->slots.size() != slots || mode_ != mode) {
            device.reset();
            device = open(work, slots, mode);
        }

        const long least = static_cast<long>(slots);
        const long batches = std::max(least, static_cast<long>(millis * 1e6 / batch_ns_));
        // Bytes that differ afterwards were written by the loop.
        for (Slot& slot : device->slots) std::memset(slot.y_host, 0xFF, work.down_bytes());
        batch_ns_ = closed_loop(*device, mode, batches) / batches;
        std::printf("ok period_ns=%.1f batches=%ld hash=%016llx\n", batch_ns_, batches,
                    static_cast<unsigned long long>(hash_of(*device)));
        std::fflush(stdout);
        device_ = std::move(device);
    }

private:
    // An idle GPU runs at low clocks.
    static constexpr double WARM_UP_MILLIS = 20;

    std::unique_ptr<Device> device_;
    Mode mode_ = Mode::Graph;
    double batch_ns_ = 0;

    std::unique_ptr<Device> open(const Work& work, size_t slots, Mode mode)
    {
        auto device = std::make_unique<Device>(work, slots, mode);
        batch_ns_ = WARM_UP_MILLIS * 1e6 / batches_for(WARM_UP_MILLIS, *device, mode);
        mode_ = mode;
        return device;
    }
};

void serve()
{
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    std::cout << "hello name=CUDA_C++ version=" << CUDART_VERSION / 1000 << '.'
              << CUDART_VERSION % 1000 / 10 << " device=" << as_value(properties.name)
              << std::endl;
    Points points;
    for (std::string line; std::getline(std::cin, line) && line != "quit";) {
        try {
            points.answer(Request(line));
        } catch (const std::exception& error) {
            std::cerr << error.what() << std::endl;
            refuse(error.what());
        }
    }
}

}  // namespace

int main(int argc, char** argv)
{
    if (argc != 2 || std::string(argv[1]) != "--serve") {
        std::fprintf(stderr, "usage: %s --serve\n", argv[0]);
        return 2;
    }
    try {
        // Waits spin, as the engine's do. The flag must be set before any other call.
        CHECK(cudaSetDeviceFlags(cudaDeviceScheduleSpin));
        CHECK(cudaSetDevice(0));
        serve();
    } catch (const std::exception& error) {
        refuse(error.what());
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
