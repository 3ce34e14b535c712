/* fuzz_query.c - a query, and after a newline a user agent.
 *
 * Each text is the first of its name, as the reader below it finds it; all of them encoded again
 * are the same query. Options that are taken are within their bounds, and what is refused has a
 * Status with a reason; a manager of fields can always be stored. */
#include "serve/wire/kube_query.h"

#include <assert.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "cluster/embedded.h"
#include "resource/resource.h"
#include "resource/validate.h"
#include "rest/rest.h"

#define TEXT_BYTES_MAX (1u << 20)
#define BYTES_MAX 4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    const char *name;
    size_t offset;
} names[] = {
    {"labelSelector",        offsetof(struct dv_query, label_selector)  },
    {"fieldSelector",        offsetof(struct dv_query, field_selector)  },
    {"resourceVersion",      offsetof(struct dv_query, resource_version)},
    {"resourceVersionMatch", offsetof(struct dv_query, match)           },
    {"limit",                offsetof(struct dv_query, limit)           },
    {"continue",             offsetof(struct dv_query, continue_token)  },
    {"timeoutSeconds",       offsetof(struct dv_query, timeout)         },
    {"watch",                offsetof(struct dv_query, watch)           },
    {"allowWatchBookmarks",  offsetof(struct dv_query, allow_bookmarks) },
    {"sendInitialEvents",    offsetof(struct dv_query, send_initial)    },
    {"fieldManager",         offsetof(struct dv_query, field_manager)   },
    {"fieldValidation",      offsetof(struct dv_query, field_validation)},
    {"force",                offsetof(struct dv_query, force)           },
    {"gracePeriodSeconds",   offsetof(struct dv_query, grace_period)    },
    {"propagationPolicy",    offsetof(struct dv_query, propagation)     },
    {"orphanDependents",     offsetof(struct dv_query, orphan)          },
    {"pretty",               offsetof(struct dv_query, pretty)          },
    {"includeObject",        offsetof(struct dv_query, include_object)  },
    {"export",               offsetof(struct dv_query, export)          },
};

static dv_str text_of(const struct dv_query *query, size_t i)
{
    return *(const dv_str *)(const void *)((const char *)query + names[i].offset);
}

static void add_pair(struct dv_buf *buf, const char *name, dv_str value)
{
    dv_buf_printf(buf, "%s=", name);
    for (size_t i = 0; i < value.n; i++)
        dv_buf_printf(buf, "%%%02X", (unsigned char)value.p[i]);
    dv_buf_add_char(buf, '&');
}

static void check_texts(dv_str text, const struct dv_query *query, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_query again;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    for (size_t i = 0; i < DV_COUNT(names); i++) {
        dv_str found = DV_STR_NONE;
        bool is_there = dv_rest_query_get(text, dv_str_from_c(names[i].name), arena, &found);

        assert(is_there == (text_of(query, i).p != NULL));
        assert(!is_there || dv_str_eq(found, text_of(query, i)));
        if (is_there)
            add_pair(&buf, names[i].name, found);
    }
    for (size_t i = 0; i < query->n_dry_run; i++)
        add_pair(&buf, "dryRun", query->dry_run[i]);
    dv_query_parse(dv_buf_str(&buf), arena, &again);
    for (size_t i = 0; i < DV_COUNT(names); i++)
        assert(dv_str_eq(text_of(query, i), text_of(&again, i)) &&
               !text_of(query, i).p == !text_of(&again, i).p);
    assert(again.n_dry_run == query->n_dry_run);
    for (size_t i = 0; i < query->n_dry_run; i++)
        assert(dv_str_eq(again.dry_run[i], query->dry_run[i]));
}

static void check_failure(const struct dv_api_status *failure)
{
    assert(failure && (failure->code == 400 || failure->code == 422));
    assert(failure->message.n > 0 && failure->reason.n > 0);
}

static void check_writes(const struct dv_query *query, bool is_apply, dv_str agent,
                         struct dv_arena *arena)
{
    static const char *const kinds[] = {"CreateOptions", "UpdateOptions", "PatchOptions"};

    for (size_t i = 0; i < DV_COUNT(kinds); i++) {
        struct dv_api_status *failure = NULL;
        struct dv_write_options options;

        if (!dv_query_write_options(query, kinds[i], is_apply, agent, arena, &options, &failure)) {
            check_failure(failure);
            continue;
        }
        assert(options.is_dry_run == (query->n_dry_run > 0));
        assert(options.field_manager.n > 0 && options.field_manager.n <= 128);
        assert(dv_str_is_utf8(options.field_manager));
        for (size_t k = 0; k < options.field_manager.n; k++)
            assert((unsigned char)options.field_manager.p[k] >= ' ');
    }
}

static void check_deletes(const struct dv_query *query, struct dv_arena *arena)
{
    struct dv_api_status *failure = NULL;
    struct dv_api_delete_options options;
    struct dv_problems problems = {.arena = arena};

    if (!dv_query_delete_options(query, arena, &options, &failure)) {
        check_failure(failure);
        return;
    }
    assert(!options.grace_period_seconds == !query->grace_period.p);
    dv_validate_delete_options(&options, &problems);
    if (problems.n > 0)
        return;
    assert(!options.orphan_dependents || !options.propagation_policy.p);
    for (size_t i = 0; i < options.n_dry_run; i++)
        assert(dv_str_eq(options.dry_run[i], DV_STR("All")));
}

static void check_lists(const struct dv_query *query, struct dv_arena *arena)
{
    for (int is_watch = 0; is_watch < 2; is_watch++) {
        struct dv_api_status *failure = NULL;
        struct dv_list_options options;

        if (!dv_query_list_options(query, is_watch, arena, &options, &failure)) {
            check_failure(failure);
            continue;
        }
        assert(options.limit <= INT64_MAX && options.timeout_s <= INT64_MAX);
        assert(is_watch || !options.has_send_initial);
        assert(is_watch || options.match == DV_MATCH_NONE || query->resource_version.n > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str input = {(const char *)data, size};
    size_t end = dv_str_find_char(input, '\n');
    dv_str text = dv_str_slice(input, 0, end);
    dv_str agent = dv_str_slice(input, end + 1, size);
    struct dv_query query;

    /* A target with a broken escape, or that is not UTF-8, is not handed on. */
    if (size > BYTES_MAX || !dv_str_is_utf8(text) || dv_str_find_char(text, '%') < text.n)
        return 0;
    dv_query_parse(text, arena, &query);
    check_texts(text, &query, arena);
    check_lists(&query, arena);
    check_writes(&query, false, agent, arena);
    check_writes(&query, true, agent, arena);
    check_deletes(&query, arena);
    return 0;
}
