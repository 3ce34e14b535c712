#include "resource/tests/validate/test_validation.h"

#include "support/dvtest.h"

#include "base/arena.h"
#include "base/buf.h"
#include "resource/patch.h"
#include "json/json.h"

#define TEXT_BYTES_MAX (16u * 1024u * 1024u)

static const struct dv_time now = {.seconds = 1767225600, .is_set = true};

static struct dv_json *read_yaml(const char *text, struct dv_arena *arena)
{
    struct dv_err err;
    struct dv_json *doc = dv_yaml_parse(dv_str_from_c(text), NULL, arena, &err);

    assert_ok(doc != NULL, &err);
    return doc;
}

static void *make_object(const struct subject *subject, const char *change, struct dv_arena *arena)
{
    const struct dv_kind *kind = dv_kind(subject->kind);
    const struct dv_message *message = kind->versions[0].message;
    struct dv_json *doc = read_yaml(subject->base, arena);
    void *value = dv_arena_alloc(arena, message->size, message->align);
    struct dv_err err;

    if (change && change[0])
        doc = dv_patch_merge(doc, read_yaml(change, arena), arena);
    assert_ok(dv_decode_json(message, doc, DV_UNKNOWN_DROP, arena, value, NULL, &err), &err);
    dv_default(kind, &kind->versions[0], value, now, arena);
    return value;
}

static void find_problems(const struct subject *subject, const char *change, const char *old_change,
                          struct dv_problems *problems)
{
    struct dv_validation what = {.kind = dv_kind(subject->kind), .operation = subject->operation};

    what.value = make_object(subject, change, problems->arena);
    if (subject->operation != DV_CREATE)
        what.old = make_object(subject, old_change, problems->arena);
    dv_validate(&what, problems);
}

void check_refusal(const struct subject *subject, const char *change, const char *want)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const size_t prefix = sizeof("FieldValue") - 1;
    struct dv_problems problems = {.arena = arena};
    dv_str got = DV_STR("");

    find_problems(subject, change, NULL, &problems);
    for (size_t i = 0; i < problems.n; i++)
        got = dv_str_printf(arena, "%.*s%s%.*s:%s", DV_FMT(got), i > 0 ? " " : "",
                            DV_FMT(problems.v[i].field),
                            dv_problem_reason(problems.v[i].type) + prefix);
    if (!dv_str_eq(got, dv_str_from_c(want)))
        fail_msg("%.300s: got \"%.*s\", want \"%s\"", change, DV_FMT(got), want);
}

void check_refusals(const struct subject *subject, const struct refusal *rows, size_t n_rows)
{
    for (size_t i = 0; i < n_rows; i++)
        check_refusal(subject, rows[i].change, rows[i].want);
}

dv_str problem_texts(const struct subject *subject, const char *change, const char *old_change,
                     struct dv_arena *arena)
{
    struct dv_problems problems = {.arena = arena};
    dv_str text = DV_STR("");

    find_problems(subject, change, old_change, &problems);
    for (size_t i = 0; i < problems.n; i++)
        text = dv_str_printf(arena, "%.*s%s%.*s: %.*s", DV_FMT(text), i > 0 ? "\n" : "",
                             DV_FMT(problems.v[i].field), DV_FMT(problems.v[i].detail));
    return text;
}

const char *repeated(const char *before, const char *item, size_t n, const char *after,
                     struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_buf_add_c(&buf, before);
    for (size_t i = 0; i < n; i++) {
        dv_str rest = dv_str_from_c(item);
        dv_str piece;

        dv_buf_add_c(&buf, i > 0 ? ", " : "");
        for (bool is_first = true; dv_str_split(&rest, '#', &piece); is_first = false) {
            if (!is_first)
                dv_buf_add_u64(&buf, i);
            dv_buf_add(&buf, piece);
        }
    }
    dv_buf_add_c(&buf, after);
    return dv_str_to_c(dv_buf_str(&buf), arena);
}
