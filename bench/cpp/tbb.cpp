// oneTBB as a peer of the farm: blocks through a parallel pipeline whose first and last filter are serial, in order.
//
//     tbb WORKERS BLOCKS TOKENS

#include "worker.hpp"

#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>
#include <tbb/version.h>

#include <cstring>
#include <vector>

namespace {

constexpr uint64_t MESSAGE_BYTES = 200, PER_BLOCK = 64;

/// One block, which all walk: messages whose first eight bytes are their length.
std::vector<char> block_of_messages() {
    std::vector<char> block(PER_BLOCK * MESSAGE_BYTES);
    for (uint64_t at = 0; at < block.size(); at += MESSAGE_BYTES) {
        std::memcpy(&block[at], &MESSAGE_BYTES, sizeof MESSAGE_BYTES);
    }
    return block;
}

/// Walks a block by its lengths; gives how many messages it has.
uint64_t walk(const std::vector<char>& block) {
    uint64_t at = 0, messages = 0;
    while (at + 8 <= block.size()) {
        uint64_t length;
        std::memcpy(&length, &block[at], sizeof length);
        // So that each one is read, as in the others.
        asm volatile("" : "+r"(length));
        at += length;
        messages++;
    }
    return messages;
}

Pass pipeline(tbb::task_arena& arena, const std::vector<char>& block, uint64_t blocks, size_t tokens) {
    uint64_t claimed = 0, next = 0, sum = 0;
    auto claim = [&](tbb::flow_control& flow) -> uint64_t {
        if (claimed == blocks) flow.stop();
        return claimed++;
    };
    auto number = [&](uint64_t messages) {
        sum += next * messages + messages * (messages - 1) / 2;
        next += messages;
    };
    arena.execute([&] {
        using tbb::filter_mode;
        tbb::parallel_pipeline(
            tokens, tbb::make_filter<void, uint64_t>(filter_mode::serial_in_order, claim) &
                        tbb::make_filter<uint64_t, uint64_t>(filter_mode::parallel, [&](uint64_t) { return walk(block); }) &
                        tbb::make_filter<uint64_t, void>(filter_mode::serial_in_order, number));
    });
    return {next, 0, sum};
}

} // namespace

int main(int count, char** arguments) try {
    if (count != 4) throw std::runtime_error("three arguments are wanted");
    auto workers = std::stoi(arguments[1]);
    auto blocks = std::stoull(arguments[2]);
    auto tokens = std::stoul(arguments[3]);
    auto block = block_of_messages();
    tbb::task_arena arena(workers);
    auto pass = [&] { return pipeline(arena, block, blocks, tokens); };
    auto values = [&](Sink& sink) {
        Pass found = pass();
        sink(reinterpret_cast<const char*>(&found.sum), sizeof found.sum);
        return found;
    };
    serve("oneTBB " + std::to_string(TBB_VERSION_MAJOR) + "." + std::to_string(TBB_VERSION_MINOR), values, pass);
} catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
}
