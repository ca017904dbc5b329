// A peer in a process of its own: it does one pass over the input for each line on stdin, so that its repeats can be
// in turn with those of others. `bench/peers/src/apart.rs` is the other end.
//
//     ready NAME                                   first of all, when the input is in memory
//     values FILE  ->  done WALL CPU MESSAGES FAULTS SUM   a pass that writes the values it finds to FILE
//     pass         ->  done WALL CPU MESSAGES FAULTS SUM   a pass
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>

/// What a pass over the input came to.
struct Pass {
    uint64_t messages = 0, faults = 0, sum = 0;
};

/// Takes the bytes of the values that were found.
using Sink = std::function<void(const char*, size_t)>;

inline uint64_t cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}

template <class Work> void timed(Work work) {
    auto cpu = cpu_ns();
    auto since = std::chrono::steady_clock::now();
    Pass pass = work();
    auto wall = std::chrono::steady_clock::now() - since;
    cpu = cpu_ns() - cpu;
    std::cout << "done " << std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count() << ' ' << cpu << ' '
              << pass.messages << ' ' << pass.faults << ' ' << pass.sum << std::endl;
}

/// Answers line by line, until there are no more.
template <class Values, class Plain> void serve(const std::string& name, Values values, Plain plain) {
    std::cout << "ready " << name << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
        if (line == "pass") {
            timed(plain);
        } else if (line.rfind("values ", 0) == 0) {
            std::ofstream file(line.substr(7), std::ios::binary);
            Sink sink = [&](const char* bytes, size_t size) { file.write(bytes, std::streamsize(size)); };
            timed([&] {
                Pass pass = values(sink);
                file.close();
                if (!file) throw std::runtime_error("the values could not be written");
                return pass;
            });
        } else {
            throw std::runtime_error("no command: " + line);
        }
    }
}

inline std::string file_bytes(const char* path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(std::string(path) + " cannot be read");
    return {std::istreambuf_iterator<char>(file), {}};
}
