// SPDX-License-Identifier: MIT
/* wall_time.c - see wall_time.h
 *
 * A stamp says how many block entries there had been at that moment.  At a call that waits there are
 * two, before and after it, with the same number of entries: the next block belongs to the later one.
 * The last stamp of a window is at its end, which is the next one's start. */
#include "query/session/wall_time.h"

#include "base/binary_search.h"
#include "format/reading/window_read.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND 1000000000ull

/* ---- stamps of one window, with absolute times, and one at its start ---- */

static struct tbd_stamp start_of(struct tbd_session *session, uint32_t window)
{
    struct tbd_stamp *stamps,
        start = { .time = tbd_trace_window(session->trace, window)->first_time };
    size_t count;

    if (window == 0 && start.time == 0)
        start.ns = session->info->realtime_ns;
    if (window == 0 || tbd_trace_stamps(session->trace, window - 1, &stamps, &count) != TBD_OK)
        return start;
    if (count != 0)
        start.ns = stamps[count - 1].ns;
    free(stamps);
    return start;
}

static bool load(struct tbd_session *session, uint32_t window)
{
    struct tbd_stamp *stamps = NULL, start;
    size_t count = 0;

    if (session->wall.stamps != NULL && session->wall.window == window)
        return session->wall.count != 0;
    free(session->wall.stamps);
    session->wall.stamps = NULL;
    if (tbd_trace_stamps(session->trace, window, &stamps, &count) != TBD_OK)
        return false;
    session->wall.stamps = calloc(count + 1, sizeof(*stamps));
    session->wall.count = 0;
    session->wall.window = window;
    start = start_of(session, window);
    if (session->wall.stamps != NULL && count != 0 && start.ns != 0)
        session->wall.stamps[session->wall.count++] = start;
    for (size_t i = 0; i < count && session->wall.stamps != NULL; i++)
        session->wall.stamps[session->wall.count++] =
            (struct tbd_stamp){ start.time + stamps[i].time, stamps[i].ns };
    free(stamps);
    return session->wall.stamps != NULL && session->wall.count != 0;
}

/* ---- from a position to the time ---- */

static uint64_t between(const struct tbd_stamp *a, const struct tbd_stamp *b, uint64_t time)
{
    double part = (double)(time - a->time) / (double)(b->time - a->time);

    return a->ns + (uint64_t)(int64_t)((double)(int64_t)(b->ns - a->ns) * part);
}

bool tbd_wall_time_at(struct tbd_session *session, uint64_t time, struct tbd_wall_time *out)
{
    uint32_t count = tbd_trace_window_count(session->trace);
    uint32_t window = tbd_trace_window_of(session->trace, time);
    const struct tbd_stamp *stamps;
    size_t next;

    if (window == UINT32_MAX && count != 0 && time >= session->info->blocks)
        window = count - 1;
    if (window == UINT32_MAX || !load(session, window))
        return false;
    stamps = session->wall.stamps;
    next = TBD_COUNT_BEFORE(i, session->wall.count, stamps[i].time <= time);
    if (next != 0 && (next == session->wall.count || stamps[next - 1].time == time))
        *out = (struct tbd_wall_time){ stamps[next - 1].ns, stamps[next - 1].time == time };
    else if (next == 0 || stamps[next].time == time + 1)
        *out = (struct tbd_wall_time){ stamps[next].ns, stamps[next].time == time + 1 };
    else
        *out = (struct tbd_wall_time){ between(&stamps[next - 1], &stamps[next], time), false };
    return true;
}

/* ---- from the time to a position ---- */

/* Did the window end before `ns`? */
static bool ends_before(struct tbd_session *session, uint32_t window, uint64_t ns)
{
    return load(session, window) && session->wall.stamps[session->wall.count - 1].ns < ns;
}

bool tbd_wall_time_find(struct tbd_session *session, uint64_t ns, uint64_t *out)
{
    uint32_t count = tbd_trace_window_count(session->trace), window;
    const struct tbd_stamp *stamps, *a, *b;
    size_t i;

    if (count == 0 || !load(session, count - 1))
        return false;
    *out = session->info->blocks;
    window = (uint32_t)TBD_COUNT_BEFORE(k, count, ends_before(session, (uint32_t)k, ns));
    if (window == count)
        return true;
    if (!load(session, window))
        return false;
    stamps = session->wall.stamps;
    i = TBD_COUNT_BEFORE(k, session->wall.count, stamps[k].ns < ns);
    if (i == 0 || i == session->wall.count) {
        *out = i == 0 ? stamps[0].time : session->info->blocks;
        return true;
    }
    a = &stamps[i - 1];
    b = &stamps[i];
    *out = b->time;
    if (b->ns > ns)
        *out = a->time +
               (uint64_t)((double)(b->time - a->time) * (double)(ns - a->ns) /
                          (double)(b->ns - a->ns)) +
               (b->time > a->time);
    *out = *out > b->time ? b->time : *out;
    return true;
}

/* ---- as text ---- */

char *tbd_wall_time_text(const struct tbd_wall_time *time, bool is_full, char *out)
{
    time_t seconds = (time_t)(time->ns / SECOND);
    unsigned micro = (unsigned)(time->ns % SECOND / 1000);
    struct tm local;
    long east;
    size_t used;

    localtime_r(&seconds, &local);
    if (!is_full) {
        snprintf(out, TBD_WALL_TIME_BYTES, "%s%02d:%02d:%02d.%06u", time->is_exact ? "" : "~",
                 local.tm_hour, local.tm_min, local.tm_sec, micro);
        return out;
    }
    east = local.tm_gmtoff / 60;
    used = strftime(out, TBD_WALL_TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &local);
    snprintf(out + used, TBD_WALL_TIME_BYTES - used, ".%06u%c%02ld:%02ld", micro,
             east < 0 ? '-' : '+', labs(east) / 60, labs(east) % 60);
    return out;
}

/* ".5" and the like, as nanoseconds; *text moves past it. */
static uint64_t read_fraction(const char **text)
{
    uint64_t ns = 0, unit = SECOND;

    if (**text != '.' || !isdigit((unsigned char)(*text)[1]))
        return 0;
    for (++*text; isdigit((unsigned char)**text); ++*text) {
        unit /= 10;
        ns += unit * (uint64_t)(**text - '0');
    }
    return ns;
}

/* Whole seconds and a fraction, of any unit. */
static bool read_number(const char **text, uint64_t *out_whole, uint64_t *out_fraction)
{
    char *end;

    if (!isdigit((unsigned char)**text))
        return false;
    *out_whole = strtoull(*text, &end, 10);
    *text = end;
    *out_fraction = read_fraction(text);
    return *out_whole < UINT64_MAX / SECOND / 2;
}

static bool read_relative(const struct tbd_session *session, const char *text, uint64_t *out)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = { { "", SECOND }, { "s", SECOND },      { "ms", SECOND / 1000 },
                  { "us", 1000 }, { "m", 60 * SECOND }, { "h", 3600 * SECOND } };
    uint64_t whole, fraction;

    if (!read_number(&text, &whole, &fraction))
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(text, units[i].name) != 0 || whole > UINT64_MAX / 4 / units[i].ns)
            continue;
        *out = session->info->realtime_ns + whole * units[i].ns +
               (uint64_t)((double)fraction * ((double)units[i].ns / (double)SECOND));
        return true;
    }
    return false;
}

static bool read_since_1970(const char *text, uint64_t *out)
{
    uint64_t whole, fraction;

    if (!read_number(&text, &whole, &fraction) || *text != '\0')
        return false;
    *out = whole * SECOND + fraction;
    return true;
}

/* Two digits, which are less than `limit`. */
static bool read_two(const char **text, int limit, int *out)
{
    const char *s = *text;

    if (!isdigit((unsigned char)s[0]) || !isdigit((unsigned char)s[1]))
        return false;
    *out = (s[0] - '0') * 10 + s[1] - '0';
    *text += 2;
    return *out < limit;
}

static bool skip(const char **text, char wanted)
{
    *text += **text == wanted;
    return (*text)[-1] == wanted;
}

/* HH:MM[:SS[.FRACTION]] */
static bool read_clock(const char **text, struct tm *tm, uint64_t *out_fraction)
{
    tm->tm_sec = 0;
    *out_fraction = 0;
    if (!read_two(text, 24, &tm->tm_hour) || !skip(text, ':') || !read_two(text, 60, &tm->tm_min))
        return false;
    if (**text != ':')
        return true;
    ++*text;
    if (!read_two(text, 61, &tm->tm_sec))
        return false;
    *out_fraction = read_fraction(text);
    return true;
}

/* Z, +HH:MM, -HHMM; nothing: the local zone. */
static bool read_zone(const char *text, struct tm *tm, time_t *out)
{
    int sign = *text == '-' ? -1 : 1, hours = 0, minutes = 0;

    if (*text == '\0') {
        tm->tm_isdst = -1;
        *out = mktime(tm);
        return true;
    }
    if (strcmp(text, "Z") != 0) {
        if ((*text != '+' && *text != '-') || (++text, !read_two(&text, 24, &hours)))
            return false;
        text += *text == ':';
        if (!read_two(&text, 60, &minutes) || *text != '\0')
            return false;
    }
    *out = timegm(tm) - sign * (hours * 3600 + minutes * 60);
    return true;
}

/* A time of day is one of the recording's first day, or if that is before its start, of the next. */
static bool read_time_of_day(const struct tbd_session *session, const char *text, uint64_t *out)
{
    time_t start = (time_t)(session->info->realtime_ns / SECOND), seconds;
    uint64_t fraction;
    struct tm tm;

    localtime_r(&start, &tm);
    if (!read_clock(&text, &tm, &fraction) || !read_zone(text, &tm, &seconds))
        return false;
    if (seconds + 43200 < start)
        seconds += 86400;
    *out = (uint64_t)seconds * SECOND + fraction;
    return true;
}

static bool read_date(const char *text, uint64_t *out)
{
    struct tm tm = { 0 };
    time_t seconds;
    uint64_t fraction = 0;

    text = strptime(text, "%Y-%m-%d", &tm);
    if (text == NULL)
        return false;
    if (*text == 'T' || *text == ' ') {
        text++;
        if (!read_clock(&text, &tm, &fraction))
            return false;
    }
    if (!read_zone(text, &tm, &seconds) || seconds < 0)
        return false;
    *out = (uint64_t)seconds * SECOND + fraction;
    return true;
}

bool tbd_wall_time_read(const struct tbd_session *session, const char *text, uint64_t *out_ns)
{
    if (*text == '+')
        return read_relative(session, text + 1, out_ns);
    if (*text == '@')
        return read_since_1970(text + 1, out_ns);
    return read_time_of_day(session, text, out_ns) || read_date(text, out_ns);
}
