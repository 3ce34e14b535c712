#include "jsonl.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/err.h"
#include "json/json.h"

struct replay {
    const struct jsonl_replay *replays;
    const struct jsonl_replay *now;
    unsigned n_passed;
    unsigned n_failed;
};

static void must(const struct jsonl_record *record, bool is_ok, const struct dv_err *err)
{
    if (is_ok)
        return;
    printf("%s:%u: %s\n", record->file, record->line, err->msg);
    exit(2);
}

static const struct dv_json *get(const struct jsonl_record *record, const char *key)
{
    struct dv_err err;
    const struct dv_json *node = dv_json_require(record->json, dv_str_from_c(key), &err);

    must(record, node != NULL, &err);
    return node;
}

dv_str jsonl_str(const struct jsonl_record *record, const char *key)
{
    dv_str value = DV_STR_NONE;
    struct dv_err err;

    must(record, dv_json_as_str(get(record, key), &value, &err), &err);
    return value;
}

int64_t jsonl_i64(const struct jsonl_record *record, const char *key)
{
    int64_t value = 0;
    struct dv_err err;

    must(record, dv_json_as_i64(get(record, key), &value, &err), &err);
    return value;
}

bool jsonl_bool(const struct jsonl_record *record, const char *key)
{
    const struct dv_json *node = dv_json_get(record->json, dv_str_from_c(key));
    bool value = false;
    struct dv_err err;

    must(record, !node || dv_json_as_bool(node, &value, &err), &err);
    return value;
}

void jsonl_compare_str(struct jsonl_record *record, const char *what, dv_str got, dv_str want)
{
    if (dv_str_eq(got, want))
        return;
    printf("%s:%u: %s: got %.*s, want %.*s\n", record->file, record->line, what, DV_FMT(got),
           DV_FMT(want));
    record->has_failed = true;
}

void jsonl_compare_i64(struct jsonl_record *record, const char *what, int64_t got, int64_t want)
{
    jsonl_compare_str(record, what, dv_str_printf(record->arena, "%lld", (long long)got),
                      dv_str_printf(record->arena, "%lld", (long long)want));
}

void jsonl_compare_bool(struct jsonl_record *record, const char *what, bool got, bool want)
{
    jsonl_compare_str(record, what, got ? DV_STR("true") : DV_STR("false"),
                      want ? DV_STR("true") : DV_STR("false"));
}

static void replay_line(struct replay *replay, const char *file, unsigned line, dv_str text)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct jsonl_record record = {file, line, NULL, arena, false};
    struct dv_err err;

    record.json = dv_json_parse(text, NULL, arena, &err);
    must(&record, record.json != NULL, &err);
    replay->now->replay(&record);
    if (record.has_failed)
        replay->n_failed++;
    else
        replay->n_passed++;
}

static void replay_file(size_t kind, const char *name, FILE *file, void *ctx)
{
    struct replay *replay = ctx;
    char *text = NULL;
    size_t size = 0;
    ssize_t n;

    replay->now = &replay->replays[kind];
    for (unsigned line = 1; (n = getline(&text, &size, file)) > 0; line++)
        replay_line(replay, name, line, (dv_str){text, (size_t)n});
    free(text);
}

int jsonl_main(int argc, char **argv, const struct jsonl_replay *replays, size_t n_replays)
{
    struct replay replay = {.replays = replays};
    struct golden_kind kinds[JSONL_REPLAYS_MAX];
    unsigned n_lost;

    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s DIR\n", argv[0]);
        return 2;
    }
    assert(n_replays <= DV_COUNT(kinds));
    for (size_t i = 0; i < n_replays; i++)
        kinds[i] = replays[i].kind;
    n_lost = golden_files(argv[1], kinds, n_replays, replay_file, &replay);
    replay.n_failed += n_lost;
    printf("%u passed, %u failed\n", replay.n_passed, replay.n_failed);
    return replay.n_failed > 0;
}
