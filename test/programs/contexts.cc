// SPDX-License-Identifier: MIT
// flags: -fno-omit-frame-pointer -fno-optimize-sibling-calls
/* contexts - tbd_context() against the stack that libgcc unwinds at the same moment, in every way to come to a place:
 * calls, indirect calls, tail calls, after longjmp and exceptions, in signal handlers, on other stacks, in threads.
 * Where there is no calling context (value 0) nothing is compared; with an argument it says how often it was. */
#include "base/calling.h"

#include <tbd/tbd.h>

#include <algorithm>
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

#define NOINLINE __attribute__((noinline, noclone))

static tbd_calling_scheme scheme = TBD_CALLING_ORDER;
static std::atomic<unsigned> compared, wrong;

/* ---- the numbers of return addresses ---- */

struct mapping {
    uint64_t start, end, offset;
    std::string path;
};

static std::vector<mapping> read_mappings()
{
    std::vector<mapping> found;
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096], path[4096];
    unsigned long start, end, offset;

    while (maps && fgets(line, sizeof(line), maps)) {
        path[0] = '\0';
        if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %4095[^\n]", &start, &end, &offset, path) >= 3)
            found.push_back({ start, end, offset, path });
    }
    if (maps)
        fclose(maps);
    return found;
}

static uint64_t number_of(uint64_t address)
{
    static const std::vector<mapping> mappings = read_mappings();

    for (const mapping &m : mappings)
        if (address > m.start && address <= m.end)
            return tbd_calling_number(tbd_calling_module(m.path.c_str()), address - m.start + m.offset);
    return 0;
}

/* ---- the comparison ---- */

static const char *where = "";
static thread_local int outermost_are_no_calls; /* return addresses that no call has pushed */
static thread_local int signal_now;             /* its frame is on the stack: 0 for none */
static std::atomic<uint64_t> after_handler;     /* the address that handlers return to */

/* The value in the caller of the asm below, and the address that its call returns to. */
#define ASK(value, site)                                                                           \
    __asm__ volatile("call *%2\n1: lea 1b(%%rip), %1"                                              \
                     : "=a"(value), "=&r"(site)                                                    \
                     : "r"((tbd_context))                                                          \
                     : "memory", "cc")

static uint64_t fold(void *const *frames, int count)
{
    uint64_t value = 0;

    for (int i = count - 1 - outermost_are_no_calls; i >= 1; i--) {
        uint64_t address = (uint64_t)frames[i];

        /* the handler's return address, and before it in time the interrupted instruction */
        if (signal_now && i + 1 < count && (uint64_t)frames[i] == after_handler)
            value = tbd_calling_enter(
                scheme, value, tbd_calling_number(tbd_calling_module(TBD_CALLING_SIGNAL), (uint64_t)signal_now));
        else if (!(signal_now && i >= 1 && (uint64_t)frames[i - 1] == after_handler))
            value = tbd_calling_enter(scheme, value, number_of(address));
    }
    return value;
}

static NOINLINE void check(int line)
{
    void *frames[256];
    uint64_t value = 0, site = 0, expected;
    int count;

    if (!(tbd_context))
        return;
    ASK(value, site);
    if (!value)
        return;
    count = backtrace(frames, 256);
    expected = tbd_calling_enter(scheme, fold(frames, count), number_of(site));
    compared++;
    if (value == expected)
        return;
    wrong++;
    printf("%s: line %d: the value is %016lx, the stack's is %016lx\n", where, line, value, expected);
    fflush(stdout);
    backtrace_symbols_fd(frames, count, 1);
}
#define CHECK() check(__LINE__)

/* ---- calls ---- */

static NOINLINE int recurse(int n)
{
    CHECK();
    int sum = n > 0 ? recurse(n - 1) + recurse(n / 2 - 1) : 1;
    CHECK();
    return sum;
}

static NOINLINE int compare(const void *a, const void *b)
{
    CHECK();
    return *(const int *)a - *(const int *)b;
}

static void calls()
{
    int numbers[] = { 5, 3, 9, 1 };

    recurse(6);
    qsort(numbers, 4, sizeof(int), compare); /* through a library, by a pointer */
    CHECK();
}

static NOINLINE void last() { CHECK(); }

static NOINLINE __attribute__((optimize("optimize-sibling-calls"))) void tail(void (*next)(void))
{
    CHECK();
    next(); /* a jump */
}

static void tail_calls()
{
    tail(last);
    CHECK();
}

static NOINLINE long many(long a, long b, long c, long d, long e, long f, long g, long h)
{
    CHECK();
    return a + b + c + d + e + f + g + h;
}

/* ---- jumps out of functions ---- */

static jmp_buf place;
static volatile bool jumps = true;

static NOINLINE void jump(int n)
{
    char space[100];

    memset(space, n, sizeof(space));
    __asm__ volatile("" ::"r"(space) : "memory");
    CHECK();
    if (n == 0 && jumps)
        longjmp(place, 1);
    if (n > 0)
        jump(n - 1);
    CHECK();
}

static void longjmps()
{
    for (volatile int i = 0; i < 5; i++) {
        if (setjmp(place) == 0) {
            many(1, 2, 3, 4, 5, 6, 7, 8);
            jump(i);
        }
        CHECK();
        many(1, 2, 3, 4, 5, 6, 7, i);
    }
    CHECK();
}

static void *words[5];

static NOINLINE void builtin_jump()
{
    CHECK();
    __builtin_longjmp(words, 1);
}

static NOINLINE void builtin_longjmps()
{
    if (__builtin_setjmp(words) == 0)
        builtin_jump();
    CHECK();
}

struct guard {
    ~guard() { CHECK(); }
};

static NOINLINE int throws(int n)
{
    guard g;

    if (n == 0)
        throw std::runtime_error("x");
    return throws(n - 1) + (int)many(n, n, n, n, n, n, n, n);
}

static NOINLINE int catches(int n)
{
    try {
        CHECK();
        return throws(n) + 1;
    } catch (const std::exception &) {
        CHECK();
        if (n % 2)
            throw;
        many(1, 2, 3, 4, 5, 6, 7, 8);
    }
    CHECK();
    return 0;
}

static NOINLINE long pushed(long n) /* throws out of a call with arguments on the stack */
{
    try {
        return many(1, 2, 3, 4, 5, 6, 7, throws((int)n));
    } catch (...) {
        CHECK();
        return n;
    }
}

static NOINLINE long throws_with_arguments(long a, long b, long c, long d, long e, long f, long g, long h)
{
    CHECK();
    throw a + b + c + d + e + f + g + h;
}

static NOINLINE long pushed_more(long n)
{
    long caught = 0;

    for (int i = 0; i < 2; i++) {
        try {
            throws_with_arguments(1, 2, 3, 4, 5, 6, 7, n);
        } catch (long sum) {
            CHECK();
            caught += sum;
        }
    }
    return caught;
}

static void exceptions()
{
    for (int n = 0; n < 5; n++) {
        try {
            catches(n);
        } catch (const std::exception &) {
            CHECK();
        }
        CHECK();
    }
    pushed(3);
    pushed_more(3);
    CHECK();
}

/* ---- signals ---- */

static sigjmp_buf after_fault;

static NOINLINE void in_handler(int signo)
{
    int before = signal_now;

    signal_now = signo;
    CHECK();
    recurse(2);
    signal_now = before;
}

#define NOTE_RETURN() (after_handler = (uint64_t)__builtin_extract_return_addr(__builtin_return_address(0)))

static void handler(int signo)
{
    NOTE_RETURN();
    in_handler(signo);
}

static void jumping_handler(int signo)
{
    NOTE_RETURN();
    in_handler(signo);
    siglongjmp(after_fault, 1);
}

static NOINLINE void raises(int signo)
{
    CHECK();
    raise(signo);
    CHECK();
}

static NOINLINE int faults(volatile int *at)
{
    CHECK();
    return *at;
}

static std::atomic<unsigned> ticks;

/* Anywhere in the program: the value in the handler without what the handler adds. */
static NOINLINE void spin()
{
    volatile long sum = 0;

    for (int i = 0; i < 200; i++)
        sum += many(i, sum, 3, 4, 5, 6, 7, 8);
    recurse(5);
}

static void tick(int signo)
{
    ticks++;
    NOTE_RETURN();
    in_handler(signo);
}

/* libgcc's own, which a handler's unwinding asks about every function on the way. */
struct dwarf_eh_bases {
    void *text, *data, *function;
};
extern "C" const void *_Unwind_Find_FDE(void *at, dwarf_eh_bases *out);

/* A signal seldom comes inside tbd_context(): what unwinding needs there is asked for. */
static void can_be_interrupted()
{
    dwarf_eh_bases bases;

    if ((tbd_context) && !_Unwind_Find_FDE((void *)(tbd_context), &bases)) {
        printf("tbd_context() cannot be unwound\n");
        wrong++;
    }
}

static void signals()
{
    static char stack[1 << 16];
    stack_t own = {};
    struct sigaction action = {};
    itimerval every = { { 0, 1000 }, { 0, 1000 } }, never = {};

    can_be_interrupted();
    own.ss_sp = stack;
    own.ss_size = sizeof(stack);
    sigaltstack(&own, nullptr);
    for (int flags : { 0, SA_ONSTACK }) {
        action.sa_flags = flags;
        action.sa_handler = handler;
        sigaction(SIGUSR1, &action, nullptr);
        raises(SIGUSR1);
        action.sa_handler = jumping_handler;
        action.sa_flags = flags | SA_NODEFER;
        sigaction(SIGSEGV, &action, nullptr);
        for (volatile int i = 0; i < 3; i++) {
            if (sigsetjmp(after_fault, 1) == 0)
                faults(nullptr);
            signal_now = 0;
            CHECK();
        }
        action.sa_handler = tick;
        action.sa_flags = flags | SA_RESTART;
        sigaction(SIGALRM, &action, nullptr);
        ticks = 0;
        setitimer(ITIMER_REAL, &every, nullptr);
        while (ticks < 20)
            spin();
        setitimer(ITIMER_REAL, &never, nullptr);
        CHECK();
    }
}

/* ---- other stacks ---- */

static ucontext_t here, there[3];

static NOINLINE void hop(int n, int depth)
{
    CHECK();
    if (depth) {
        hop(n, depth - 1);
    } else {
        swapcontext(&there[n], &here);
        CHECK();
    }
    CHECK();
}

static void coroutine(int n)
{
    outermost_are_no_calls = 1;
    for (int i = 0; i < 3; i++)
        hop(n, i + n);
    outermost_are_no_calls = 0;
}

static void coroutines()
{
    static char fixed[65536];
    char local[65536]; /* in a frame that callers and callees surround */
    void *low = mmap((void *)0x10000000, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *stacks[3] = { fixed, local, low };

    for (int again = 0; again < 2; again++) {
        for (int n = 0; n < 3; n++) {
            getcontext(&there[n]);
            there[n].uc_stack.ss_sp = stacks[n];
            there[n].uc_stack.ss_size = 65536;
            there[n].uc_link = &here;
            makecontext(&there[n], (void (*)(void))coroutine, 1, n);
        }
        for (int i = 0; i < 4; i++)
            for (int n = 0; n < 3; n++) {
                outermost_are_no_calls = 1;
                swapcontext(&here, &there[n]);
                outermost_are_no_calls = 0;
                CHECK();
            }
    }
}

/* ---- threads and processes ---- */

static void *thread(void *)
{
    CHECK();
    recurse(4);
    exceptions();
    return nullptr;
}

static void threads()
{
    pthread_t ids[8];

    for (int again = 0; again < 3; again++) {
        for (pthread_t &id : ids)
            pthread_create(&id, nullptr, thread, nullptr);
        for (pthread_t id : ids)
            pthread_join(id, nullptr);
    }
    CHECK();
}

static void processes()
{
    int status = 0;

    fflush(stdout);
    if (fork() == 0) {
        CHECK();
        recurse(3);
        fflush(stdout);
        _exit(wrong != 0);
    }
    wait(&status);
    if (status)
        wrong++;
    CHECK();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)();
    } cases[] = {
        { "calls", calls },
        { "tail calls", tail_calls },
        { "longjmp", longjmps },
        { "longjmp of the compiler", builtin_longjmps },
        { "exceptions", exceptions },
        { "signals", signals },
        { "swapcontext", coroutines },
        { "threads", threads },
        { "processes", processes },
    };

    if (argc > 1)
        scheme = strcmp(argv[1], "xor") == 0   ? TBD_CALLING_XOR
                 : strcmp(argv[1], "sum") == 0 ? TBD_CALLING_SUM
                                               : TBD_CALLING_ORDER;
    for (const auto &one : cases) {
        unsigned before = compared;

        where = one.name;
        one.run();
        printf("%s", one.name);
        if (argc > 1)
            printf(" %d", compared > before);
        printf("\n");
    }
    return wrong ? 1 : 0;
}
