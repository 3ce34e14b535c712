/* fuzz_pod_log_options.c - a query of a request for a log.
 *
 * Options that are taken are within their bounds; what is refused is a Status of 400 or 422 with a
 * message. The same query with its pairs twice means the same, because the first one counts. */
#include <assert.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/calendar.h"
#include "base/defs.h"
#include "base/str.h"
#include "podlog/podlog.h"
#include "resource/resource.h"
#include "serve/logs/pod_log.h"

#define BYTES_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct dv_rfc3339 now = {.seconds = 1763300000, .nanos = 5};

/* 0: the options are taken. */
static int64_t parse(dv_str query, struct dv_arena *arena, struct dv_pod_log_options *options)
{
    struct dv_api_status *failure;

    if (dv_pod_log_options_parse(query, DV_STR("p"), now, arena, options, &failure))
        return 0;
    assert(failure->code == 400 || failure->code == 422);
    assert(failure->message.n > 0);
    return failure->code;
}

static void check_same(const struct dv_pod_log_options *a, const struct dv_pod_log_options *b)
{
    assert(dv_str_eq(a->container, b->container) && a->is_previous == b->is_previous);
    assert(a->show.is_followed == b->show.is_followed);
    assert(a->show.has_timestamps == b->show.has_timestamps);
    assert(a->show.has_tail == b->show.has_tail && a->show.tail_lines == b->show.tail_lines);
    assert(a->show.has_limit == b->show.has_limit && a->show.limit_bytes == b->show.limit_bytes);
    assert(a->show.has_since == b->show.has_since);
    assert(a->show.since.seconds == b->show.since.seconds);
    assert(a->show.since.nanos == b->show.since.nanos);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dv_str query = {(const char *)data, size};
    const dv_str twice[] = {query, DV_STR("&"), query};
    struct dv_pod_log_options options, again;
    struct dv_arena *arena;
    int64_t code;

    if (size > BYTES_MAX)
        return 0;
    arena = dv_arena_new();
    code = parse(query, arena, &options);
    assert(parse(dv_str_concat(twice, DV_COUNT(twice), arena), arena, &again) == code);
    if (code == 0) {
        check_same(&options, &again);
        assert(options.show.tail_lines <= INT64_MAX && options.show.limit_bytes <= INT64_MAX);
        assert(!options.show.has_limit || options.show.limit_bytes > 0);
        assert(options.show.since.nanos >= 0 && options.show.since.nanos < 1000000000);
    }
    dv_arena_free(arena);
    return 0;
}
