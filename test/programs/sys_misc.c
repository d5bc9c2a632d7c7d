// SPDX-License-Identifier: MIT
/* Calls that fill small structures: times, limits, ids, resources, random bytes, names. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
    unsigned char a[64] = { 0 }, b[64] = { 0 };
    struct utsname names;
    struct sysinfo info;
    struct rlimit limit = { 0, 0 };
    struct rusage usage;
    struct tms tms;
    struct timespec pause = { 0, 1000000 }, rest;
    struct iovec local = { a, 16 }, remote = { b, 16 };
    cpu_set_t cpus;
    char name[16] = "";
    gid_t groups[64];
    unsigned cpu;

    CHECK(uname(&names) == 0 && strcmp(names.sysname, "Linux") == 0);
    CHECK(sysinfo(&info) == 0 && info.totalram > 0);
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 0);
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0 && times(&tms) != (clock_t)-1);
    CHECK(nanosleep(&pause, &rest) == 0 && usleep(100) == 0);
    CHECK(getrandom(a, 64, 0) == 64 && getrandom(b, 64, 0) == 64 && memcmp(a, b, 64) != 0);
    CHECK(process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 16 && memcmp(a, b, 16) == 0);
    CHECK(sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) > 0);
    CHECK(prctl(PR_SET_NAME, "renamed") == 0 && prctl(PR_GET_NAME, name) == 0 && strcmp(name, "renamed") == 0);
    CHECK(getgroups(64, groups) >= 0 && syscall(SYS_getcpu, &cpu, NULL, NULL) == 0);
    CHECK(getpid() == syscall(SYS_gettid) && getppid() > 0);
    CHECK(syscall(100000) == -1 && errno == ENOSYS);
    CHECK(syscall(SYS_read, -1, NULL, 0) == -1 && errno == EBADF);
    puts("misc ok");
    return 0;
}
