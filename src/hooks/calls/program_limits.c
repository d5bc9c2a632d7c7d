// SPDX-License-Identifier: MIT
/* program_limits.c - see program_limits.h */
#include "hooks/calls/program_limits.h"

#include "base/linux_abi.h"
#include "base/string.h"
#include "base/sys.h"
#include "hooks/calls/capability.h"
#include "hooks/calls/map_changes.h"
#include "hooks/memory/maps.h"
#include "hooks/memory/program_memory.h"

enum limited { SPACE, DATA, KINDS };

static const uint32_t resources[KINDS] = { RLIMIT_AS, RLIMIT_DATA };

static struct {
    struct tbd_sys_limit asked[KINDS];
    bool answers[KINDS];
} limits;

static struct tbd_sys_limit kernel_limit(enum limited what)
{
    struct tbd_sys_limit limit = { RLIM64_INFINITY, RLIM64_INFINITY };

    tbd_sys4(__NR_prlimit64, 0, resources[what], 0, tbd_sys_pointer(&limit));
    return limit;
}

void tbd_program_limits_begin(void)
{
    for (enum limited what = 0; what < KINDS; what++) {
        limits.asked[what] = tbd_sys_limit_lift(resources[what]);
        limits.answers[what] = limits.asked[what].lower < limits.asked[what].upper;
    }
}

void tbd_program_limits_give_back(void)
{
    for (enum limited what = 0; what < KINDS; what++)
        tbd_sys_limit_put_back(resources[what], &limits.asked[what]);
}

/* ---- what the program asks for ---- */

static enum limited what_of(uint32_t resource)
{
    return resource == RLIMIT_AS ? SPACE : resource == RLIMIT_DATA ? DATA : KINDS;
}

/* A limit that there is already and could not be raised stays the kernel's. */
bool tbd_program_limits_answers(uint64_t pid, uint32_t resource)
{
    enum limited what = what_of(resource);

    if (what == KINDS || ((uint32_t)pid && (uint32_t)pid != (uint32_t)tbd_sys_getpid()))
        return false;
    if (!limits.answers[what]) {
        limits.asked[what] = kernel_limit(what);
        limits.answers[what] = limits.asked[what].lower == RLIM64_INFINITY;
    }
    return limits.answers[what];
}

int64_t tbd_program_limits_exchange(uint32_t resource, const struct tbd_sys_limit *set,
                                    struct tbd_sys_limit *out_old)
{
    struct tbd_sys_limit *asked = &limits.asked[what_of(resource)];

    *out_old = *asked;
    if (!set)
        return 0;
    if (set->lower > set->upper)
        return -EINVAL;
    if (set->upper > asked->upper && !tbd_has_capability(CAP_SYS_RESOURCE))
        return -EPERM;
    *asked = *set;
    return 0;
}

/* ---- what the program has ---- */

struct sum {
    struct tbd_range range; /* of which the two are looked at apart */
    uint64_t bytes[KINDS];  /* of the program */
    uint64_t within[KINDS]; /* of that, in the range */
};

static bool is_data(uint32_t prot, uint32_t map_flags)
{
    return prot & PROT_WRITE && !(map_flags & (MAP_SHARED | MAP_GROWSDOWN));
}

/* The engine may have changed the protection of a page meanwhile: the table has the program's. */
static bool is_data_at(const struct tbd_msg_region *map)
{
    const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, map->start);

    return region ? is_data(region->map.prot, region->map.map_flags)
                  : is_data(map->prot, map->map_flags);
}

static bool add(void *context, const struct tbd_msg_region *map, const char *path)
{
    struct sum *sum = context;
    uint64_t start = map->start > sum->range.start ? map->start : sum->range.start;
    uint64_t end = map->end < sum->range.end ? map->end : sum->range.end;
    bool counts[KINDS] = { true, is_data_at(map) };

    (void)path;
    if (map->end > TBD_USER_END || tbd_map_is_engine(map->start, map->end))
        return true;
    for (enum limited what = 0; what < KINDS; what++) {
        sum->bytes[what] += counts[what] ? map->end - map->start : 0;
        sum->within[what] += counts[what] && start < end ? end - start : 0;
    }
    return true;
}

static bool fits(enum limited what, uint64_t has, uint64_t more)
{
    const struct tbd_sys_limit *limit = &limits.asked[what];
    uint64_t sum = has + more;

    return !limits.answers[what] || sum <= limit->lower ||
           (what == DATA && !limit->lower &&
            sum <= limit->upper); /* the kernel has it for valgrind */
}

static bool is_limited(void)
{
    for (enum limited what = 0; what < KINDS; what++)
        if (limits.answers[what] && limits.asked[what].lower != RLIM64_INFINITY)
            return true;
    return false;
}

/* `more` bytes of a mapping, which is data or not; what it replaces is given back first. */
static bool goes_beyond(uint64_t more, bool with_data, struct tbd_range replaced)
{
    struct sum sum = { .range = replaced };

    if (!is_limited() || !more || more > TBD_USER_END)
        return false;
    tbd_maps_read(add, &sum);
    more -= sum.within[SPACE] < more ? sum.within[SPACE] : more;
    return !fits(SPACE, sum.bytes[SPACE], more) ||
           (with_data && !fits(DATA, sum.bytes[DATA], more));
}

/* Memory that is there already becomes data. */
static bool becomes_too_much_data(struct tbd_range range)
{
    struct sum sum = { .range = range };
    uint64_t more;

    if (!is_limited())
        return false;
    tbd_maps_read(add, &sum);
    more = sum.within[SPACE] - sum.within[DATA];
    return more && !fits(DATA, sum.bytes[DATA], more);
}

static bool refuses_map(const uint64_t *args)
{
    uint64_t bytes = tbd_map_page_up(args[1]);
    struct tbd_range replaced = { args[0], args[0] };

    if (args[3] & MAP_FIXED)
        replaced.end += bytes;
    return goes_beyond(bytes, is_data(tbd_region_prot(args[2]), (uint32_t)args[3]), replaced);
}

static bool refuses_remap(const uint64_t *args)
{
    const struct tbd_mapped_region *region = tbd_regions_find(&tbd_memory.regions, args[0]);
    uint64_t was = args[3] & MREMAP_DONTUNMAP ? 0 : tbd_map_page_up(args[1]);
    uint64_t bytes = tbd_map_page_up(args[2]);

    return region && bytes > was &&
           goes_beyond(bytes - was, is_data(region->map.prot, region->map.map_flags),
                       (struct tbd_range){ 0, 0 });
}

static bool refuses_break(uint64_t end)
{
    uint64_t was = tbd_map_page_up(tbd_memory.brk_end);

    end = tbd_map_page_up(end);
    return end > was && goes_beyond(end - was, true, (struct tbd_range){ 0, 0 });
}

bool tbd_program_limits_refuse(const struct tbd_sys_call *sys)
{
    const uint64_t *args = sys->args;

    switch (sys->number) {
    case __NR_mmap: return refuses_map(args);
    case __NR_mremap: return refuses_remap(args);
    case __NR_brk: return refuses_break(args[0]);
    case __NR_mprotect:
    case __NR_pkey_mprotect:
        return args[2] & PROT_WRITE && becomes_too_much_data((struct tbd_range){
                                           args[0], args[0] + tbd_map_page_up(args[1]) });
    default: return false;
    }
}

bool tbd_program_limits_refuse_shared(uint64_t bytes)
{
    return goes_beyond(bytes, false, (struct tbd_range){ 0, 0 });
}

/* ---- another program ---- */

/* The upper limit stays: it could not be raised again if execve fails. */
void tbd_program_limits_before_exec(void)
{
    for (enum limited what = 0; what < KINDS; what++) {
        struct tbd_sys_limit limit = kernel_limit(what);

        if (!limits.answers[what] || limits.asked[what].lower > limit.upper)
            continue;
        limit.lower = limits.asked[what].lower;
        tbd_sys4(__NR_prlimit64, 0, resources[what], tbd_sys_pointer(&limit), 0);
    }
}

void tbd_program_limits_after_exec(void)
{
    for (enum limited what = 0; what < KINDS; what++)
        if (limits.answers[what])
            tbd_sys_limit_lift(resources[what]);
}
