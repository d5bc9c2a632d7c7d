// SPDX-License-Identifier: MIT
/* Code on pages that are writable and executable: changed between calls, by itself ahead of itself and
 * behind itself, by a system call, next to data that changes all the time; bytes that are no instruction
 * until later; a page that becomes executable behind one that is. */
#include "check.h"
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u
#define RWX (PROT_READ | PROT_WRITE | PROT_EXEC)

static unsigned char *room(size_t bytes)
{
    unsigned char *at = mmap(NULL, bytes, RWX, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED) {
        puts("no writable code here");
        exit(0);
    }
    return at;
}

static unsigned call(const unsigned char *code, uint64_t argument)
{
    return ((unsigned (*)(uint64_t))(uintptr_t)code)(argument);
}

/* mov $value, %eax; ret */
static void write_return(unsigned char *at, uint32_t value)
{
    at[0] = 0xb8;
    memcpy(at + 1, &value, 4);
    at[5] = 0xc3;
}

static unsigned between_calls(void)
{
    unsigned char *page = room(PAGE);
    unsigned sum = 0;

    for (uint32_t i = 0; i < 100; i++) {
        write_return(page, i * 7);
        sum += call(page, 0);
    }
    CHECK(sum == 7 * 99 * 50);
    return sum;
}

/* Two versions in turn, and a loop in each. */
static unsigned in_turn(void)
{
    /* mov $n, %ecx; xor %eax, %eax; 1: add $k, %eax; dec %ecx; jnz 1b; ret */
    static const unsigned char code[] = { 0xb9, 9, 0, 0, 0, 0x31, 0xc0, 0x83, 0xc0, 1,
                                          0xff, 0xc9, 0x75, 0xf9, 0xc3 };
    unsigned char *page = room(PAGE);
    unsigned sum = 0;

    memcpy(page + 100, code, sizeof(code));
    for (unsigned i = 0; i < 50; i++) {
        page[109] = i & 1 ? 3 : 2;
        sum += call(page + 100, 0);
    }
    CHECK(sum == 25 * 9 * 5);
    return sum;
}

/* Within one stretch of straight code: the bytes just behind the store, and far behind. */
static unsigned ahead(void)
{
    static const unsigned char code[] = {
        0x40, 0x88, 0x3d, 1, 0, 0, 0,             /* mov %dil, 1(%rip): the immediate of the next */
        0xb8, 0,    0,    0, 0,                   /* mov $0, %eax */
        0xc6, 0x05, 3,    0, 0, 0, 5,             /* movb $5, 3(%rip) */
        0x90, 0x05, 0,    0, 0, 0,                /* nop; add $0, %eax */
        0x66, 0xc7, 0x05, 0, 0, 0, 0, 0xff, 0xc0, /* movw $0xc0ff, 0(%rip): inc %eax */
        0x0f, 0x0b,                               /* ud2 until then */
        0xc3,
    };
    unsigned char *page = room(PAGE);
    unsigned sum = 0;

    for (unsigned i = 0; i < 60; i++) {
        memcpy(page + 7, code, sizeof(code));
        sum += call(page + 7, i);
    }
    CHECK(sum == 59 * 30 + 60 * 0x501);
    return sum;
}

/* A loop that changes an instruction it has already run, and pushes in between. */
static unsigned behind(void)
{
    static const unsigned char code[] = {
        0x31, 0xc0,                   /* xor %eax, %eax */
        0xb9, 0x64, 0, 0, 0,          /* mov $100, %ecx */
        0x05, 0x01, 0, 0, 0,          /* 1: add $1, %eax */
        0x51,                         /* push %rcx */
        0x88, 0x0d, 0xf5, 0xff, 0xff, 0xff, /* mov %cl, -11(%rip): the immediate of add */
        0x59,                         /* pop %rcx */
        0xff, 0xc9,                   /* dec %ecx */
        0x75, 0xef,                   /* jnz 1b */
        0xc3,
    };
    unsigned char *page = room(PAGE);
    unsigned value;

    memcpy(page, code, sizeof(code));
    value = call(page, 0);
    CHECK(value == 1 + 99 * 51);
    return value;
}

/* Data that changes on the page of code that does not. */
static unsigned next_to_data(void)
{
    /* inc dword 0x80(%rip)...; mov it, %eax; ret */
    static const unsigned char code[] = { 0xff, 0x05, 0x7a, 0, 0, 0, 0x8b, 0x05, 0x74, 0, 0, 0, 0xc3 };
    unsigned char *page = room(PAGE);
    unsigned value = 0;

    memcpy(page, code, sizeof(code));
    for (unsigned i = 0; i < 2000; i++)
        value = call(page, 0);
    CHECK(value == 2000);
    return value;
}

static unsigned by_system_call(void)
{
    unsigned char *page = room(PAGE);
    unsigned char text[6];
    unsigned sum = 0;
    int ends[2];

    CHECK(pipe(ends) == 0);
    for (uint32_t i = 0; i < 50; i++) {
        write_return(text, i * 3);
        CHECK(write(ends[1], text, 6) == 6 && read(ends[0], page + PAGE - 6, 6) == 6);
        sum += call(page + PAGE - 6, 0);
    }
    CHECK(sum == 3 * 49 * 25);
    return sum;
}

/* Straight code up to bytes that are no instruction; later they are. */
static unsigned no_instruction_yet(void)
{
    /* test %edi, %edi; jnz 1f; ret; 1: mov $1, %eax; bytes */
    static const unsigned char code[] = { 0x89, 0xf8, 0x85, 0xff, 0x75, 1, 0xc3, 0xb8, 1, 0, 0, 0, 6 };
    static const unsigned char more[] = { 0xff, 0xc0, 0xc3 };
    unsigned char *page = room(PAGE);
    unsigned sum = 0;

    for (unsigned i = 0; i < 10; i++) {
        memcpy(page, code, sizeof(code));
        sum += call(page, 0);
        memcpy(page + 12, more, sizeof(more));
        sum += call(page, 1);
        page[13] = (unsigned char)(i & 1 ? 0xc8 : 0xc0); /* dec or inc */
        sum += call(page, 1);
    }
    return sum;
}

/* Code runs from a page into the next, of which the rights change. */
static unsigned into_the_next_page(void)
{
    unsigned char *page = room(3 * PAGE);
    unsigned sum = 0;

    for (uint32_t i = 0; i < 10; i++) {
        CHECK(mprotect(page, 3 * PAGE, PROT_READ | PROT_WRITE) == 0);
        memset(page + PAGE - 8, 0x90, 8);
        write_return(page + PAGE, i);
        write_return(page + 2 * PAGE - 2, i * 5);
        CHECK(mprotect(page, PAGE, PROT_READ | PROT_EXEC) == 0);
        CHECK(mprotect(page + PAGE, 2 * PAGE, i % 3 ? RWX : PROT_READ | PROT_EXEC) == 0);
        sum += call(page + PAGE - 8, 0);
        if (i % 3 == 1)
            CHECK(mprotect(page + 2 * PAGE, PAGE, PROT_READ | PROT_EXEC) == 0);
        sum += call(page + 2 * PAGE - 2, 0);
    }
    CHECK(sum == 45 * 6);
    return sum;
}

int main(void)
{
    printf("%u\n", between_calls());
    printf("%u\n", in_turn());
    printf("%u\n", ahead());
    printf("%u\n", behind());
    printf("%u\n", next_to_data());
    printf("%u\n", by_system_call());
    printf("%u\n", no_instruction_yet());
    printf("%u\n", into_the_next_page());
    return 0;
}
