#include "cli/record/json_diff.h"

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "json/json.h"

/* What is shown of one value. */
#define VALUE_BYTES_MAX 200u
#define TEXT_BYTES_MAX (256u * 1024u * 1024u)
/* More lines say nothing more. */
#define LINES_MAX 100u

struct diff {
    struct dv_arena *arena;
    DV_VEC(const char *) lines;
};

static dv_str print(const struct dv_json *node, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf text;
    dv_str shown;

    dv_buf_init(&text, TEXT_BYTES_MAX);
    if (!node)
        return DV_STR("nothing");
    dv_json_print(node, NULL, &text);
    shown = dv_buf_str(&text);
    if (shown.n > VALUE_BYTES_MAX)
        return dv_str_printf(arena, "%.*s...", (int)VALUE_BYTES_MAX, shown.p);
    return dv_str_copy(shown, arena);
}

static void add(struct diff *diff, dv_str path, const struct dv_json *recorded,
                const struct dv_json *now)
{
    dv_str line;

    if (diff->lines.n >= LINES_MAX)
        return;
    line = dv_str_printf(diff->arena, "%.*s: recorded %.*s, now %.*s",
                         DV_FMT(path.n > 0 ? path : DV_STR("the message")),
                         DV_FMT(print(recorded, diff->arena)), DV_FMT(print(now, diff->arena)));
    *dv_vec_add_in(&diff->lines, diff->arena) = dv_cli_plain(line, diff->arena);
}

static void compare(struct diff *diff, dv_str path, const struct dv_json *recorded,
                    const struct dv_json *now);

static dv_str member_path(struct diff *diff, dv_str path, dv_str key)
{
    return path.n == 0 ? key : dv_str_printf(diff->arena, "%.*s.%.*s", DV_FMT(path), DV_FMT(key));
}

static void compare_objects(struct diff *diff, dv_str path, const struct dv_json *recorded,
                            const struct dv_json *now)
{
    const struct dv_json *member;

    for (member = dv_json_first(recorded); member; member = dv_json_next(member))
        compare(diff, member_path(diff, path, dv_json_key(member)), member,
                dv_json_get(now, dv_json_key(member)));
    for (member = dv_json_first(now); member; member = dv_json_next(member))
        if (!dv_json_get(recorded, dv_json_key(member)))
            add(diff, member_path(diff, path, dv_json_key(member)), NULL, member);
}

static void compare_arrays(struct diff *diff, dv_str path, const struct dv_json *recorded,
                           const struct dv_json *now)
{
    const struct dv_json *a = dv_json_first(recorded);
    const struct dv_json *b = dv_json_first(now);

    for (size_t i = 0; a || b; i++) {
        compare(diff, dv_str_printf(diff->arena, "%.*s[%zu]", DV_FMT(path), i), a, b);
        a = a ? dv_json_next(a) : NULL;
        b = b ? dv_json_next(b) : NULL;
    }
}

static void compare(struct diff *diff, dv_str path, const struct dv_json *recorded,
                    const struct dv_json *now)
{
    if (dv_json_is(recorded, DV_JSON_OBJECT) && dv_json_is(now, DV_JSON_OBJECT))
        compare_objects(diff, path, recorded, now);
    else if (dv_json_is(recorded, DV_JSON_ARRAY) && dv_json_is(now, DV_JSON_ARRAY))
        compare_arrays(diff, path, recorded, now);
    else if (!recorded || !now || !dv_json_eq(recorded, now))
        add(diff, path, recorded, now);
}

size_t dv_json_diff(dv_str recorded, dv_str now, struct dv_arena *arena, const char *const **lines)
{
    const struct dv_json_opts opts = {0};
    struct diff diff = {.arena = arena};
    struct dv_err err;
    const struct dv_json *a = dv_json_parse(recorded, &opts, arena, &err);
    const struct dv_json *b = dv_json_parse(now, &opts, arena, &err);

    if (a && b)
        compare(&diff, DV_STR(""), a, b);
    else if (!dv_str_eq(recorded, now)) /* more than the parser takes: told as a whole */
        *dv_vec_add_in(&diff.lines, arena) = "the messages differ";
    *lines = diff.lines.v;
    return diff.lines.n;
}
