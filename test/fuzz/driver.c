// SPDX-License-Identifier: MIT
/* driver.c - runs a fuzz target without libFuzzer: fuzz_NAME_replay CORPUS [ITERATIONS [SEED]]
 *
 * Every file of the corpus folder (which may be missing), then that many random mutations of them; with TBD_LONG=1 ten
 * times as many.
 * The same seed gives the same inputs; the input being run is kept in NAME.crash until it came
 * back. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_BYTES 8192u
#define MAX_FILES 512u

struct input {
    uint8_t bytes[MAX_BYTES];
    size_t size;
};

static struct input *corpus[MAX_FILES];
static size_t corpus_count;
static uint64_t seed = 1;
static char crash_name[256];

static uint64_t random_number(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void add_file(const char *folder, const char *name)
{
    struct input *input = calloc(1, sizeof(*input));
    char path[1024];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "rb");
    if (!input || !file) {
        free(input);
        if (file)
            fclose(file);
        return;
    }
    input->size = fread(input->bytes, 1, MAX_BYTES, file);
    fclose(file);
    corpus[corpus_count++] = input;
}

static void read_corpus(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    while (dir && corpus_count < MAX_FILES && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            add_file(folder, entry->d_name);
    if (dir)
        closedir(dir);
}

static void put_in(struct input *in)
{
    size_t at = in->size ? random_number() % in->size : 0;
    size_t bytes = random_number() % 16 + 1;

    if (in->size + bytes > MAX_BYTES)
        return;
    memmove(in->bytes + at + bytes, in->bytes + at, in->size - at);
    for (size_t i = 0; i < bytes; i++)
        in->bytes[at + i] = (uint8_t)random_number();
    in->size += bytes;
}

static void take_out(struct input *in)
{
    size_t at = random_number() % in->size;
    size_t bytes = random_number() % (in->size - at) + 1;

    memmove(in->bytes + at, in->bytes + at + bytes, in->size - at - bytes);
    in->size -= bytes;
}

static void overlay(struct input *in)
{
    const struct input *other = corpus[random_number() % corpus_count];
    size_t from = other->size ? random_number() % other->size : 0;
    size_t at = in->size ? random_number() % in->size : 0;
    size_t bytes = other->size - from;

    if (bytes > MAX_BYTES - at)
        bytes = MAX_BYTES - at;
    memcpy(in->bytes + at, other->bytes + from, bytes);
    if (at + bytes > in->size)
        in->size = at + bytes;
}

static void set_byte(struct input *in)
{
    static const uint8_t telling[] = { 0, 1, 0x7f, 0x80, 0xff, 8, 64 };
    uint64_t r = random_number();

    in->bytes[random_number() % in->size] =
        r % 3 ? telling[(r >> 8) % sizeof(telling)] : (uint8_t)(r >> 16);
}

static void mutate(struct input *in)
{
    for (uint64_t n = random_number() % 6 + 1; n; n--) {
        uint64_t what = random_number() % 10;

        if (what < 2 || !in->size)
            put_in(in);
        else if (what < 3)
            take_out(in);
        else if (what < 4 && corpus_count)
            overlay(in);
        else if (what < 6)
            in->bytes[random_number() % in->size] ^= (uint8_t)(1u << random_number() % 8);
        else
            set_byte(in);
    }
}

/* The input lies in a file while it runs: after a crash it is there to be looked at. */
static void run(const struct input *in)
{
    static int fd = -1;
    ssize_t written;

    if (fd < 0)
        fd = open(crash_name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && !ftruncate(fd, 0)) {
        written = pwrite(fd, in->bytes, in->size, 0);
        (void)written;
    }
    LLVMFuzzerTestOneInput(in->bytes, in->size);
}

int main(int argc, char **argv)
{
    const char *is_long = getenv("TBD_LONG");
    unsigned long iterations = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
    static struct input in;

    if (argc < 2)
        return 2;
    snprintf(crash_name, sizeof(crash_name), "%s.crash", program_invocation_short_name);
    if (is_long != NULL && strcmp(is_long, "1") == 0)
        iterations *= 10;
    if (argc > 3)
        seed = strtoull(argv[3], NULL, 10) | 1;
    read_corpus(argv[1]);
    for (size_t i = 0; i < corpus_count; i++)
        run(corpus[i]);
    for (unsigned long i = 0; i < iterations; i++) {
        if (corpus_count)
            in = *corpus[random_number() % corpus_count];
        else if (i % 64 == 0)
            in.size = 0;
        mutate(&in);
        run(&in);
    }
    unlink(crash_name);
    printf("%zu inputs of the corpus, %lu mutations\n", corpus_count, iterations);
    for (size_t i = 0; i < corpus_count; i++)
        free(corpus[i]);
    return 0;
}
