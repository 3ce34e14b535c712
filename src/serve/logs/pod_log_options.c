/* pod_log_options.c - reads PodLogOptions from the query of a request, as the reference does. */
#include <stddef.h>

#include "base/arena.h"
#include "base/vec.h"
#include "resource/misfit.h"
#include "resource/resource.h"
#include "resource/status.h"
#include "resource/validate.h"
#include "serve/logs/pod_log.h"
#include "serve/wire/kube_query.h"

/* The texts of the query. One that is not there has p == NULL. */
struct texts {
    dv_str container;
    dv_str follow;
    dv_str previous;
    dv_str since_seconds;
    dv_str since_time;
    dv_str timestamps;
    dv_str tail_lines;
    dv_str limit_bytes;
    dv_str stream;
};

static void split(dv_str query, struct dv_arena *arena, struct texts *texts)
{
    /* insecureSkipTLSVerifyBackend is about the way to the node, and this is the node. */
    const struct {
        dv_str name;
        dv_str *text;
    } known[] = {
        {DV_STR_INIT("container"),    &texts->container    },
        {DV_STR_INIT("follow"),       &texts->follow       },
        {DV_STR_INIT("previous"),     &texts->previous     },
        {DV_STR_INIT("sinceSeconds"), &texts->since_seconds},
        {DV_STR_INIT("sinceTime"),    &texts->since_time   },
        {DV_STR_INIT("timestamps"),   &texts->timestamps   },
        {DV_STR_INIT("tailLines"),    &texts->tail_lines   },
        {DV_STR_INIT("limitBytes"),   &texts->limit_bytes  },
        {DV_STR_INIT("stream"),       &texts->stream       },
    };
    dv_str name, value;

    while (dv_rest_query_next(&query, arena, &name, &value))
        for (size_t i = 0; i < DV_COUNT(known); i++)
            if (!known[i].text->p && dv_str_eq(name, known[i].name)) /* the first one counts */
                *known[i].text = value.p ? value : DV_STR("");
}

/* Reads a number that may be absent; *is_there tells. */
static bool parse_number(dv_str text, struct dv_arena *arena, bool *is_there, int64_t *value,
                         struct dv_api_status **failure)
{
    *is_there = text.p != NULL;
    return !*is_there || dv_query_parse_i64(text, arena, value, failure);
}

/* Reads a time that may be absent. An empty text and "null" are the first moment of the year 1,
 * because old clients sent the JSON of a time that they had not set. */
static bool parse_time(dv_str text, struct dv_arena *arena, bool *is_there,
                       struct dv_rfc3339 *value, struct dv_api_status **failure)
{
    dv_str why;

    *is_there = text.p != NULL;
    if (!*is_there)
        return true;
    if (text.n == 0 || dv_str_eq(text, DV_STR("null")))
        text = DV_STR("0001-01-01T00:00:00Z");
    if (dv_rfc3339_parse(text, DV_RFC3339_LAX, value))
        return true;
    if (!dv_misfit_time(text, false, arena, &why))
        why = dv_str_printf(arena, "parsing time \"%.*s\"", DV_FMT(text));
    *failure = dv_status_bad_request(arena, "%.*s", DV_FMT(why));
    return false;
}

static void add(struct dv_problems *problems, enum dv_problem_type type, dv_str field,
                dv_str detail)
{
    *dv_vec_add_in(problems, problems->arena) = (struct dv_problem){type, field, detail};
}

static void check_least(struct dv_problems *problems, dv_str field, int64_t value, int64_t least,
                        const char *text)
{
    if (value < least)
        add(problems, DV_PROBLEM_INVALID, field,
            dv_str_printf(problems->arena, "Invalid value: %lld: %s", (long long)value, text));
}

bool dv_pod_log_options_parse(dv_str query, dv_str name, struct dv_rfc3339 now,
                              struct dv_arena *arena, struct dv_pod_log_options *options,
                              struct dv_api_status **failure)
{
    const struct dv_status_about about = {.what = DV_STR("PodLogOptions"), .name = name};
    struct dv_problems problems = {.arena = arena};
    struct dv_pod_log_options found = {0};
    struct texts texts = {0};
    struct dv_rfc3339 time = {0};
    int64_t tail = 0, limit = 0, seconds = 0;
    bool has_seconds, has_time;

    split(query, arena, &texts);
    if (!parse_number(texts.tail_lines, arena, &found.show.has_tail, &tail, failure) ||
        !parse_number(texts.limit_bytes, arena, &found.show.has_limit, &limit, failure) ||
        !parse_number(texts.since_seconds, arena, &has_seconds, &seconds, failure) ||
        !parse_time(texts.since_time, arena, &has_time, &time, failure))
        return false;
    if (found.show.has_tail)
        check_least(&problems, DV_STR("tailLines"), tail, 0, "must be greater than or equal to 0");
    if (found.show.has_limit)
        check_least(&problems, DV_STR("limitBytes"), limit, 1, "must be greater than 0");
    if (has_seconds && has_time)
        add(&problems, DV_PROBLEM_FORBIDDEN, DV_STR(""),
            DV_STR("Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"));
    else if (has_seconds)
        check_least(&problems, DV_STR("sinceSeconds"), seconds, 1, "must be greater than 0");
    if (texts.stream.p) /* behind a gate that is off by default */
        add(&problems, DV_PROBLEM_FORBIDDEN, DV_STR("stream"),
            DV_STR("Forbidden: may not be specified"));
    if (problems.n > 0) {
        *failure = dv_status_invalid(&about, &problems, arena);
        return false;
    }
    found.container = texts.container;
    found.is_previous = dv_query_is_true(texts.previous);
    found.show.is_followed = dv_query_is_true(texts.follow);
    found.show.has_timestamps = dv_query_is_true(texts.timestamps);
    found.show.tail_lines = (uint64_t)tail;
    found.show.limit_bytes = (uint64_t)limit;
    dv_podlog_set_since(&found.show, now, has_seconds ? &seconds : NULL, has_time ? &time : NULL);
    *options = found;
    return true;
}
