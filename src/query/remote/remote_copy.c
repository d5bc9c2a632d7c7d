// SPDX-License-Identifier: MIT
/* remote_copy.c - see remote_copy.h
 *
 *   fork -> the child stops itself -> all that it has mapped is unmapped, but for a page with a system-call instruction
 *        -> the position's registers -> runs; where it touches memory that is not there, that memory comes out of the trace
 *
 * PTRACE_SYSEMU stops it before each system call, which is then not made.  The page is where the engine is in a traced program, so
 * nothing of the program's can be there.
 *
 * REMOTE_COPY-1  A piece of a region comes into the process once, so what the code writes there stays (not checked: take_piece() has the
 *   only place that fills one). */
#include "query/remote/remote_copy_private.h"

#include "base/layout.h"
#include "base/vector_layout.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    PAGE_BYTES = 4096,
    PIECE_BYTES = 64 * 1024,
    TAKE_MOST = 256 * 1024 * 1024, /* at once */
    PIECES_MOST = 16384,           /* 1 GiB */
    TRAP = 0xcc,
    CODE_SEGMENT = 0x33,
    STACK_SEGMENT = 0x2b,
    SYSCALL_STOP = SIGTRAP | 0x80,
    IMAGE_MOST = 16384
};

/* Where the engine is in a traced program. */
#define GADGET (TBD_ENGINE_BASE + (3ull << 40))

static long trace(long request, const struct tbd_copy *copy, uint64_t address, const void *data)
{
    return syscall(SYS_ptrace, request, (long)copy->pid, address, data);
}

/* ---- stops ---- */

/* False: the process has ended, or the client interrupts. */
static bool wait_for_stop(struct tbd_copy *copy, bool may_interrupt, int *out_signal)
{
    int status = 0;

    for (unsigned tries = 0;; tries++) {
        const struct timespec moment = { 0, tries < 100 ? 20000 : 2000000 };
        pid_t got = waitpid(copy->pid, &status, WNOHANG | __WALL);

        if (got == copy->pid && WIFSTOPPED(status)) {
            *out_signal = WSTOPSIG(status);
            return true;
        }
        if (got != 0 && (got > 0 || errno != EINTR)) {
            copy->pid = 0;
            return false;
        }
        if (may_interrupt && tries >= 100 && copy->owner->is_interrupted(copy->owner->context))
            return false;
        nanosleep(&moment, NULL);
    }
}

static struct user_regs_struct calling(const struct tbd_copy *copy, long number,
                                       const uint64_t arguments[6])
{
    struct user_regs_struct regs = copy->regs;

    regs.rip = GADGET;
    regs.rax = (unsigned long long)number;
    regs.orig_rax = UINT64_MAX; /* the kernel mends no call */
    regs.eflags &= ~0x40500ull; /* TF, DF, AC */
    regs.rdi = arguments[0];
    regs.rsi = arguments[1];
    regs.rdx = arguments[2];
    regs.r10 = arguments[3];
    regs.r8 = arguments[4];
    regs.r9 = arguments[5];
    return regs;
}

long tbd_copy_call(struct tbd_copy *copy, long number, const uint64_t arguments[6])
{
    struct user_regs_struct regs = calling(copy, number, arguments);
    int signal = 0;

    if (copy->pid == 0 || trace(PTRACE_SETREGS, copy, 0, &regs) != 0)
        return -ESRCH;
    /* At the stop before an emulated call the first step ends at once. */
    for (int i = 0; i < 3; i++) {
        if (trace(PTRACE_SINGLESTEP, copy, 0, NULL) != 0 || !wait_for_stop(copy, false, &signal) ||
            trace(PTRACE_GETREGS, copy, 0, &regs) != 0)
            return -ESRCH;
        if (regs.rip == GADGET + 2)
            return (long)regs.rax;
        regs = calling(copy, number, arguments);
        if (trace(PTRACE_SETREGS, copy, 0, &regs) != 0)
            return -ESRCH;
    }
    return -EIO;
}

/* ---- memory ---- */

static const struct tbd_region *region_at(const struct tbd_copy *copy, uint64_t address)
{
    size_t low = 0, high = copy->region_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (copy->regions[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < copy->region_count && copy->regions[low].start <= address ? &copy->regions[low]
                                                                           : NULL;
}

/* A page that the trace does not have is not there in the copy, either. */
static void fill(struct tbd_copy *copy, uint64_t start, uint64_t end)
{
    struct tbd_session *session = copy->owner->session;
    uint8_t page[PAGE_BYTES];

    for (uint64_t at = start; at < end; at += PAGE_BYTES)
        if (tbd_session_read(session, copy->owner->at, at, page, sizeof(page)) != TBD_OK ||
            pwrite(copy->memory, page, sizeof(page), (off_t)at) != (ssize_t)sizeof(page))
            (void)tbd_copy_call(copy, SYS_munmap, (uint64_t[6]){ at, PAGE_BYTES });
}

/* The piece of a region in which the address is.  False: there is none, or it is there already. */
static bool take_piece(struct tbd_copy *copy, uint64_t address)
{
    const struct tbd_region *region = region_at(copy, address);
    uint64_t start = address & ~(uint64_t)(PIECE_BYTES - 1), end = start + PIECE_BYTES;
    size_t before = copy->pieces.count;
    long got;

    if (region == NULL)
        return false;
    if (start < region->start)
        start = region->start;
    if (end > region->end)
        end = region->end;
    if (before == PIECES_MOST || tbd_address_table_add(&copy->pieces, start, 0) == NULL ||
        copy->pieces.count == before)
        return false;
    got = tbd_copy_call(copy, SYS_mmap,
                        (uint64_t[6]){ start, end - start, region->prot & 7u,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                                       UINT64_MAX, 0 });
    if (got != (long)start)
        return false;
    fill(copy, start, end);
    return true;
}

bool tbd_copy_take(struct tbd_copy *copy, uint64_t address, uint64_t bytes)
{
    uint64_t end = address + bytes;

    if (end < address || bytes > TAKE_MOST)
        return false;
    for (uint64_t at = address; at < end; at = (at | (PAGE_BYTES - 1)) + 1)
        (void)take_piece(copy, at);
    return true;
}

bool tbd_copy_read(struct tbd_copy *copy, uint64_t address, void *out, size_t bytes)
{
    return copy->pid != 0 && tbd_copy_take(copy, address, bytes) &&
           pread(copy->memory, out, bytes, (off_t)address) == (ssize_t)bytes;
}

bool tbd_copy_write(struct tbd_copy *copy, uint64_t address, const void *in, size_t bytes)
{
    return copy->pid != 0 && tbd_copy_take(copy, address, bytes) &&
           pwrite(copy->memory, in, bytes, (off_t)address) == (ssize_t)bytes;
}

bool tbd_copy_map(struct tbd_copy *copy, uint64_t address, uint64_t bytes)
{
    return tbd_copy_call(copy, SYS_mmap,
                         (uint64_t[6]){ address, bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                                        UINT64_MAX, 0 }) == (long)address;
}

/* ---- registers ---- */

struct tbd_reg_state *tbd_copy_state(struct tbd_copy *copy)
{
    return &copy->state;
}

/* The components that both images have; in the others `to` stays as it is. */
static void copy_image(uint8_t *to, const struct tbd_vector_layout *to_layout, const uint8_t *from,
                       const struct tbd_vector_layout *from_layout)
{
    /* states have no tiles, and the copy begins without any */
    uint64_t both = to_layout->mask & from_layout->mask & ~(1ull << TBD_VECTOR_TILES), in_use, kept;

    memcpy(to, from, TBD_VECTOR_SOFTWARE);
    for (unsigned i = 2; i < TBD_VECTOR_COMPONENTS; i++)
        if ((both >> i & 1) != 0)
            memcpy(to + to_layout->offset[i], from + from_layout->offset[i],
                   tbd_vector_component_bytes(i));
    memcpy(&in_use, from + TBD_VECTOR_LEGACY, sizeof(in_use));
    memcpy(&kept, to + TBD_VECTOR_LEGACY, sizeof(kept));
    in_use = (in_use & both) | (kept & ~both);
    memcpy(to + TBD_VECTOR_LEGACY, &in_use, sizeof(in_use));
}

/* A trace without images has zeros there, and the process keeps what it has. */
static bool move_vectors(struct tbd_copy *copy, bool to_process)
{
    static uint8_t image[IMAGE_MOST];
    struct tbd_vector_layout live, kept;
    struct iovec state = { image, sizeof(image) };
    const struct tbd_trace_info *info = copy->owner->session->info;
    uint64_t mask;

    if (trace(PTRACE_GETREGSET, copy, NT_X86_XSTATE, &state) != 0)
        return false;
    if (state.iov_len < TBD_VECTOR_EXTENDED ||
        !tbd_vector_layout_find(info->xcr0, info->xsave_bytes, &kept) ||
        kept.short_bytes > sizeof(copy->state.xsave))
        return true;
    memcpy(&mask, image + TBD_VECTOR_SOFTWARE, sizeof(mask));
    tbd_vector_layout_of_processor(mask, &live);
    if (live.bytes > state.iov_len)
        return true;
    if (to_process)
        copy_image(image, &live, copy->state.xsave, &kept);
    else
        copy_image(copy->state.xsave, &kept, image, &live);
    return !to_process || trace(PTRACE_SETREGSET, copy, NT_X86_XSTATE, &state) == 0;
}

/* state.regs and regs are the same registers; `order` is that of enum tbd_reg. */
static void list_registers(struct user_regs_struct *regs, unsigned long long *out[TBD_REG_COUNT])
{
    unsigned long long *const order[TBD_REG_COUNT] = {
        [TBD_RAX] = &regs->rax, [TBD_RCX] = &regs->rcx, [TBD_RDX] = &regs->rdx,
        [TBD_RBX] = &regs->rbx, [TBD_RSP] = &regs->rsp, [TBD_RBP] = &regs->rbp,
        [TBD_RSI] = &regs->rsi, [TBD_RDI] = &regs->rdi, [TBD_R8] = &regs->r8,
        [TBD_R9] = &regs->r9,   [TBD_R10] = &regs->r10, [TBD_R11] = &regs->r11,
        [TBD_R12] = &regs->r12, [TBD_R13] = &regs->r13, [TBD_R14] = &regs->r14,
        [TBD_R15] = &regs->r15,
    };

    memcpy(out, order, sizeof(order));
}

static bool give_registers(struct tbd_copy *copy)
{
    const struct tbd_regs *from = &copy->state.regs;
    unsigned long long *to[TBD_REG_COUNT];

    list_registers(&copy->regs, to);
    for (unsigned i = 0; i < TBD_REG_COUNT; i++)
        *to[i] = from->gpr[i];
    copy->regs.rip = from->rip;
    copy->regs.eflags = from->rflags;
    copy->regs.fs_base = from->fs_base;
    copy->regs.gs_base = from->gs_base;
    copy->regs.cs = CODE_SEGMENT;
    copy->regs.ss = STACK_SEGMENT;
    copy->regs.orig_rax = UINT64_MAX;
    return move_vectors(copy, true);
}

static bool take_registers(struct tbd_copy *copy)
{
    struct tbd_regs *to = &copy->state.regs;
    unsigned long long *from[TBD_REG_COUNT];

    list_registers(&copy->regs, from);
    for (unsigned i = 0; i < TBD_REG_COUNT; i++)
        to->gpr[i] = *from[i];
    to->rip = copy->regs.rip;
    to->rflags = copy->regs.eflags;
    to->fs_base = copy->regs.fs_base;
    to->gs_base = copy->regs.gs_base;
    return move_vectors(copy, false);
}

/* ---- beginning and end ---- */

/* Between fork and the first stop: system calls alone. */
_Noreturn static void be_a_copy(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (__rseq_size != 0) /* the kernel writes into its area, which will be unmapped */
        syscall(SYS_rseq, (char *)__builtin_thread_pointer() + __rseq_offset, sizeof(struct rseq),
                RSEQ_FLAG_UNREGISTER, RSEQ_SIG);
    syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0);
    syscall(SYS_kill, syscall(SYS_getpid), SIGSTOP);
    for (;;)
        syscall(SYS_exit_group, 1);
}

/* Everything but the page; what the kernel does not let go does not matter until the program has something there. */
static void unmap_all(struct tbd_copy *copy)
{
    char path[40], line[512];
    uint64_t start, end;
    FILE *maps;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)copy->pid);
    maps = fopen(path, "re");
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL)
        if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 && start != GADGET &&
            end <= TBD_USER_END)
            (void)tbd_copy_call(copy, SYS_munmap, (uint64_t[6]){ start, end - start });
    if (maps != NULL)
        fclose(maps);
}

/* A process that stands, with this process' memory. */
static bool begin_process(struct tbd_copy *copy)
{
    static const uint8_t code[] = { 0x0f, 0x05, TRAP };
    void *page = mmap((void *)(uintptr_t)GADGET, PAGE_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    char path[40];
    pid_t pid = -1;
    int signal = 0;

    if (page == MAP_FAILED)
        return false;
    memcpy(page, code, sizeof(code));
    if (mprotect(page, PAGE_BYTES, PROT_READ | PROT_EXEC) == 0)
        pid = fork();
    if (pid == 0)
        be_a_copy();
    munmap(page, PAGE_BYTES);
    copy->pid = pid < 0 ? 0 : pid;
    if (copy->pid == 0 || !wait_for_stop(copy, false, &signal) ||
        trace(PTRACE_SETOPTIONS, copy, 0,
              (const void *)(PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD)) != 0 ||
        trace(PTRACE_GETREGS, copy, 0, &copy->regs) != 0)
        return false;
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)copy->pid);
    copy->memory = open(path, O_RDWR | O_CLOEXEC);
    return copy->memory >= 0;
}

struct tbd_copy *tbd_copy_start(const struct tbd_copy_owner *owner,
                                const struct tbd_reg_state *state, char why[128])
{
    struct tbd_copy *copy = calloc(1, sizeof(*copy));
    struct tbd_session *session = owner->session;

    snprintf(why, 128, "out of memory");
    if (copy == NULL)
        return NULL;
    copy->owner = owner;
    copy->memory = -1;
    copy->state = *state;
    copy->pieces.element = sizeof(uint64_t);
    if (tbd_trace_regions_at(session->trace, owner->at.time, &copy->regions, &copy->region_count,
                             &session->why) == TBD_OK) {
        if (begin_process(copy)) {
            unmap_all(copy);
            if (give_registers(copy))
                return copy;
        }
        snprintf(why, 128, "no process for it can be made: %s", strerror(errno));
    }
    tbd_copy_end(copy);
    return NULL;
}

void tbd_copy_end(struct tbd_copy *copy)
{
    if (copy == NULL)
        return;
    if (copy->pid != 0) {
        kill(copy->pid, SIGKILL);
        while (waitpid(copy->pid, NULL, __WALL) < 0 && errno == EINTR)
            ;
    }
    if (copy->memory >= 0)
        close(copy->memory);
    tbd_address_table_free(&copy->pieces);
    free(copy);
}

/* ---- running ---- */

/* The first byte of a place, while a trap stands there. */
struct placed_trap {
    uint64_t address;
    uint8_t byte;
    bool stands;
};

static struct placed_trap *set_traps(struct tbd_copy *copy, const uint64_t *places, size_t count)
{
    static const uint8_t trap = TRAP;
    struct placed_trap *traps = calloc(count + 1, sizeof(*traps));

    for (size_t i = 0; traps != NULL && i < count; i++) {
        traps[i].address = places[i];
        traps[i].stands = tbd_copy_read(copy, places[i], &traps[i].byte, 1) &&
                          traps[i].byte != TRAP && tbd_copy_write(copy, places[i], &trap, 1);
    }
    return traps;
}

static void remove_traps(struct tbd_copy *copy, struct placed_trap *traps, size_t count)
{
    for (size_t i = 0; traps != NULL && i < count; i++)
        if (traps[i].stands)
            (void)!tbd_copy_write(copy, traps[i].address, &traps[i].byte, 1);
    free(traps);
}

static bool is_place(const uint64_t *places, size_t count, uint64_t address)
{
    for (size_t i = 0; i < count; i++)
        if (places[i] == address)
            return true;
    return false;
}

/* Memory that was touched and is in the trace comes; anything else is the program's own fault. */
static bool mends_fault(struct tbd_copy *copy, int signal)
{
    siginfo_t info = { .si_code = 0 };

    return (signal == SIGSEGV || signal == SIGBUS) &&
           trace(PTRACE_GETSIGINFO, copy, 0, &info) == 0 && info.si_code > 0 &&
           take_piece(copy, (uint64_t)(uintptr_t)info.si_addr);
}

/* Goes on, up to a stop that is none of ours. */
static enum tbd_copy_end go_on(struct tbd_copy *copy, bool steps, int *out_signal)
{
    for (;;) {
        int signal = 0;

        if (trace(PTRACE_SETREGS, copy, 0, &copy->regs) != 0 ||
            trace(steps ? PTRACE_SYSEMU_SINGLESTEP : PTRACE_SYSEMU, copy, 0, NULL) != 0)
            return TBD_COPY_EXITED;
        if (!wait_for_stop(copy, true, &signal)) {
            if (copy->pid == 0)
                return TBD_COPY_EXITED;
            kill(copy->pid, SIGSTOP);
            if (!wait_for_stop(copy, false, &signal) ||
                trace(PTRACE_GETREGS, copy, 0, &copy->regs) != 0)
                return TBD_COPY_EXITED;
            return TBD_COPY_INTERRUPTED;
        }
        if (trace(PTRACE_GETREGS, copy, 0, &copy->regs) != 0)
            return TBD_COPY_EXITED;
        if (signal == SYSCALL_STOP) {
            *out_signal = tbd_copy_carry_out(copy);
            copy->regs.orig_rax = UINT64_MAX;
            if (*out_signal == SIGKILL)
                return TBD_COPY_EXITED;
            if (*out_signal != 0)
                return TBD_COPY_SIGNALLED;
            if (steps)
                return TBD_COPY_STEPPED;
            continue;
        }
        if (mends_fault(copy, signal))
            continue;
        *out_signal = signal;
        return signal == SIGTRAP && steps ? TBD_COPY_STEPPED : TBD_COPY_SIGNALLED;
    }
}

enum tbd_copy_end tbd_copy_run(struct tbd_copy *copy, const uint64_t *places, size_t count,
                               bool steps, int *out_signal)
{
    enum tbd_copy_end end = TBD_COPY_EXITED;
    struct placed_trap *traps;

    *out_signal = 0;
    if (copy->pid == 0 || !give_registers(copy))
        return end;
    if (!steps && is_place(places, count, copy->regs.rip))
        return TBD_COPY_TRAPPED;
    traps = steps ? NULL : set_traps(copy, places, count);
    end = go_on(copy, steps, out_signal);
    if (end == TBD_COPY_SIGNALLED && *out_signal == SIGTRAP && traps != NULL &&
        is_place(places, count, copy->regs.rip - 1)) {
        copy->regs.rip--;
        end = TBD_COPY_TRAPPED;
    }
    remove_traps(copy, traps, count);
    return copy->pid != 0 && take_registers(copy) ? end : TBD_COPY_EXITED;
}
