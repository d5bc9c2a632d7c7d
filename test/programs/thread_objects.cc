// SPDX-License-Identifier: MIT
// libs: pthread
/* C++: std::thread, exceptions in several threads at once, futures, call_once, thread_local with destructors. */
#include <atomic>
#include <cstdio>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static std::atomic<unsigned> destroyed;
static std::once_flag once;
static unsigned times_called;

struct counted {
    unsigned value = 0;
    ~counted() { destroyed += value; }
};
static thread_local counted local;

static unsigned deep(unsigned depth)
{
    std::string text = "depth " + std::to_string(depth);

    if (depth == 0)
        throw std::runtime_error(text);
    return deep(depth - 1) + (unsigned)text.size();
}

static void work(unsigned rounds, unsigned &caught)
{
    std::call_once(once, [] { times_called++; });
    for (unsigned i = 0; i < rounds; i++) {
        try {
            deep(i % 10);
        } catch (const std::runtime_error &error) {
            caught += error.what() == std::string("depth 0");
        }
    }
    local.value = caught;
}

int main()
{
    std::vector<std::thread> threads;
    unsigned caught[4] = {};

    for (unsigned i = 0; i < 4; i++)
        threads.emplace_back(work, 20 + i, std::ref(caught[i]));
    for (std::thread &thread : threads)
        thread.join();
    auto future = std::async(std::launch::async, [] { return deep(3); });
    try {
        future.get();
        return 1;
    } catch (const std::runtime_error &error) {
        std::puts(error.what());
    }
    std::printf("%u %u %u\n", caught[0] + caught[3], destroyed.load(), times_called);
    return caught[0] + caught[3] == 43 && destroyed == 86 && times_called == 1 ? 0 : 1;
}
