/* podlog_tail.c - where in a file to begin: the last lines, lines since a time. */
#include "base/calendar.h"
#include "base/num.h"
#include "base/str.h"
#include "podlog/podlog.h"

#define BLOCK_BYTES 16384u

void dv_podlog_set_since(struct dv_podlog_options *options, struct dv_rfc3339 now,
                         const int64_t *since_seconds, const struct dv_rfc3339 *since_time)
{
    if (since_seconds) {
        options->has_since = true;
        options->since = now;
        if (__builtin_sub_overflow(now.seconds, *since_seconds, &options->since.seconds))
            options->since.seconds = DV_RFC3339_SECONDS_MIN;
    }
    if (!since_time)
        return;
    if (!options->has_since || since_time->seconds > options->since.seconds ||
        (since_time->seconds == options->since.seconds && since_time->nanos > options->since.nanos))
        options->since = *since_time;
    options->has_since = true;
}

void dv_podlog_tail_init(struct dv_podlog_tail *tail, uint64_t size_bytes, uint64_t n_lines)
{
    *tail = (struct dv_podlog_tail){.n_lines = n_lines, .at = size_bytes};
}

bool dv_podlog_tail_wants(const struct dv_podlog_tail *tail, uint64_t *offset, size_t *n)
{
    if (tail->is_found || tail->at == 0)
        return false;
    *n = (size_t)dv_u64_min(tail->at, BLOCK_BYTES);
    *offset = tail->at - *n;
    return true;
}

/* Looks for the end of the line before the first one that is wanted. What follows the last newline
 * is no line yet, and stands beside those that are counted. */
void dv_podlog_tail_add(struct dv_podlog_tail *tail, dv_str bytes)
{
    uint64_t offset;
    size_t n;

    if (!dv_podlog_tail_wants(tail, &offset, &n))
        return;
    if (bytes.n < n) {
        tail->at = 0;
        tail->is_found = true;
        tail->start = 0;
        return;
    }
    for (size_t i = n; i > 0; i--) {
        if (bytes.p[i - 1] != '\n')
            continue;
        if (tail->n_lines == 0) {
            tail->is_found = true;
            tail->start = offset + i;
            return;
        }
        tail->n_lines--;
    }
    tail->at = offset;
}

enum dv_podlog_step dv_podlog_follow_step(struct dv_podlog_follow *follow, bool is_running,
                                          bool is_replaced)
{
    if (is_replaced) {
        bool was_seen = follow->saw_replaced;

        /* The container may have ended too, but what it wrote last is in the new file. */
        *follow = (struct dv_podlog_follow){.saw_replaced = !was_seen};
        return was_seen ? DV_PODLOG_REOPEN : DV_PODLOG_READ;
    }
    follow->saw_replaced = false;
    if (is_running) {
        follow->saw_end = false;
        return DV_PODLOG_WAIT;
    }
    if (follow->saw_end)
        return DV_PODLOG_STOP;
    follow->saw_end = true;
    return DV_PODLOG_READ;
}
