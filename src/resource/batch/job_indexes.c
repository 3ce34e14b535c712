#include "resource/job_indexes.h"

#include "base/buf.h"
#include "base/defs.h"
#include "base/num.h"

/* More than any object that is accepted has as text. */
#define TEXT_BYTES_MAX (4u * 1024u * 1024u)

/* ---- sets ---- */

/* Adds an interval that does not begin before the last one. */
static void append(struct dv_job_indexes *indexes, struct dv_job_interval interval,
                   struct dv_arena *arena)
{
    struct dv_job_interval *last =
        indexes->intervals.n > 0 ? &indexes->intervals.v[indexes->intervals.n - 1] : NULL;

    if (!last || interval.first > last->last + 1)
        *dv_vec_add_in(&indexes->intervals, arena) = interval;
    else if (interval.last > last->last)
        last->last = interval.last;
}

void dv_job_indexes_append(struct dv_job_indexes *indexes, int64_t index, struct dv_arena *arena)
{
    append(indexes, (struct dv_job_interval){index, index}, arena);
}

struct dv_job_indexes dv_job_indexes_union(const struct dv_job_indexes *a,
                                           const struct dv_job_indexes *b, struct dv_arena *arena)
{
    struct dv_job_indexes both = {0};
    size_t i = 0;
    size_t j = 0;

    while (i < a->intervals.n || j < b->intervals.n) {
        bool takes_a = j == b->intervals.n ||
                       (i < a->intervals.n && a->intervals.v[i].first < b->intervals.v[j].first);

        append(&both, takes_a ? a->intervals.v[i++] : b->intervals.v[j++], arena);
    }
    return both;
}

bool dv_job_indexes_has(const struct dv_job_indexes *indexes, int64_t index)
{
    size_t from = 0;
    size_t to = indexes->intervals.n; /* the first that ends at or after the index is before it */

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (indexes->intervals.v[middle].last >= index)
            to = middle;
        else
            from = middle + 1;
    }
    return from < indexes->intervals.n && indexes->intervals.v[from].first <= index;
}

int64_t dv_job_indexes_n(const struct dv_job_indexes *indexes)
{
    int64_t n = 0;

    for (size_t i = 0; i < indexes->intervals.n; i++)
        n += indexes->intervals.v[i].last - indexes->intervals.v[i].first + 1;
    return n;
}

int64_t dv_job_indexes_n_shared(const struct dv_job_indexes *a, const struct dv_job_indexes *b)
{
    int64_t n = 0;

    for (size_t i = 0, j = 0; i < a->intervals.n && j < b->intervals.n;) {
        const struct dv_job_interval *x = &a->intervals.v[i];
        const struct dv_job_interval *y = &b->intervals.v[j];
        int64_t first = x->first > y->first ? x->first : y->first;
        int64_t last = x->last < y->last ? x->last : y->last;

        if (last >= first)
            n += last - first + 1;
        if (x->last < y->last)
            i++;
        else
            j++;
    }
    return n;
}

/* ---- texts ---- */

static bool read_index(dv_str text, int64_t *index)
{
    uint64_t number;

    if (!dv_str_to_u64(text, &number) || number > INT32_MAX)
        return false;
    *index = (int64_t)number;
    return true;
}

struct dv_job_indexes dv_job_indexes_parse(dv_str text, int64_t completions, struct dv_arena *arena)
{
    struct dv_job_indexes indexes = {0};
    dv_str part;

    while (text.n > 0 && dv_str_split(&text, ',', &part)) {
        size_t dash = dv_str_find_char(part, '-');
        struct dv_job_interval interval;

        if (!read_index(dv_str_slice(part, 0, dash), &interval.first))
            continue;
        interval.last = interval.first;
        if (dash < part.n && !read_index(dv_str_slice(part, dash + 1, part.n), &interval.last))
            continue;
        if (interval.last >= completions)
            interval.last = completions - 1;
        if (interval.first > interval.last ||
            (indexes.intervals.n > 0 &&
             interval.first < indexes.intervals.v[indexes.intervals.n - 1].first))
            continue; /* in no order that we write */
        append(&indexes, interval, arena);
    }
    return indexes;
}

static const char *told(dv_str text, struct dv_arena *arena)
{
    return dv_str_to_c(text, arena);
}

static const char *read_part(dv_str part, int64_t completions, struct dv_arena *arena,
                             struct dv_job_interval *interval)
{
    size_t dash = dv_str_find_char(part, '-');
    dv_str first = dv_str_slice(part, 0, dash);
    dv_str last = dash < part.n ? dv_str_slice(part, dash + 1, part.n) : first;

    if (dv_str_find_char(last, '-') < last.n)
        return told(dv_str_printf(arena,
                                  "the fragment \"%.*s\" violates the requirement that an index "
                                  "interval can have at most two parts separated by '-'",
                                  DV_FMT(part)),
                    arena);
    if (!read_index(first, &interval->first))
        return told(dv_str_printf(arena, "cannot convert string to integer for index: \"%.*s\"",
                                  DV_FMT(first)),
                    arena);
    if (interval->first >= completions)
        return told(dv_str_printf(arena, "too large index: \"%.*s\"", DV_FMT(first)), arena);
    if (!read_index(last, &interval->last))
        return told(dv_str_printf(arena, "cannot convert string to integer for index: \"%.*s\"",
                                  DV_FMT(last)),
                    arena);
    if (interval->last >= completions)
        return told(dv_str_printf(arena, "too large index: \"%.*s\"", DV_FMT(last)), arena);
    if (dash < part.n && interval->first >= interval->last)
        return told(dv_str_printf(arena, "non-increasing order, previous: %lld, current: %lld",
                                  (long long)interval->first, (long long)interval->last),
                    arena);
    return NULL;
}

const char *dv_job_indexes_fault(dv_str text, int64_t completions, struct dv_arena *arena,
                                 int64_t *n)
{
    int64_t last = -1;
    dv_str part;

    *n = 0;
    if (text.n == 0)
        return NULL;
    while (dv_str_split(&text, ',', &part)) {
        struct dv_job_interval interval = {0};
        const char *fault = read_part(part, completions, arena, &interval);

        if (fault)
            return fault;
        if (last >= interval.first)
            return told(dv_str_printf(arena, "non-increasing order, previous: %lld, current: %lld",
                                      (long long)last, (long long)interval.first),
                        arena);
        *n += interval.last - interval.first + 1;
        last = interval.last;
    }
    return NULL;
}

dv_str dv_job_indexes_print(const struct dv_job_indexes *indexes, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < indexes->intervals.n; i++) {
        const struct dv_job_interval *interval = &indexes->intervals.v[i];

        if (i > 0)
            dv_buf_add_char(&buf, ',');
        dv_buf_add_u64(&buf, (uint64_t)interval->first);
        if (interval->last > interval->first) {
            dv_buf_add_char(&buf, interval->last == interval->first + 1 ? ',' : '-');
            dv_buf_add_u64(&buf, (uint64_t)interval->last);
        }
    }
    return dv_str_copy(dv_buf_str(&buf), arena);
}
