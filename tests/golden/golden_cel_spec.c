/* golden_cel_spec.c - replays golden/cel-spec, the public conformance tests of the language, as far
 * as the environment of device selectors goes: what the reference agrees on there, we agree on;
 * what it refuses to compile, we refuse.
 *
 *     golden_cel_spec DIR      DIR holds cases.jsonl */
#include "cel/cel.h"
#include "cel/plan/compile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "cel/check/decls.h"
#include "cel/read/ast.h"
#include "cel/value/cel_map.h"
#include "cel/value/cel_run.h"
#include "cel/value/cel_value.h"
#include "cel/value/number_text.h"
#include "jsonl.h"
#include "json/json.h"

#define TEXT_BYTES_MAX 100000u
#define COST_MAX 10000000u

static _Noreturn void give_up(const struct jsonl_record *record, const char *what)
{
    printf("%s:%u: the corpus is not what its README says: %s\n", record->file, record->line, what);
    exit(2);
}

/* -- Types ----------------------------------------------------------------------------------- */

static const struct dv_cel_type *read_type(struct jsonl_record *record, dv_str *text);

static bool take(dv_str *text, const char *prefix)
{
    dv_str p = dv_str_from_c(prefix);

    if (!dv_str_starts_with(*text, p))
        return false;
    *text = dv_str_slice(*text, p.n, text->n);
    return true;
}

static const struct dv_cel_type *read_map(struct jsonl_record *record, dv_str *text)
{
    const struct dv_cel_type *key = read_type(record, text);

    if (!take(text, ", "))
        give_up(record, "type");
    return dv_cel_map_of(key, read_type(record, text), record->arena);
}

static const struct dv_cel_type *read_inner(struct jsonl_record *record, dv_str *text)
{
    const struct dv_cel_type *type = NULL;

    if (take(text, "list("))
        type = dv_cel_list_of(read_type(record, text), record->arena);
    else if (take(text, "optional_type("))
        type = dv_cel_optional_of(read_type(record, text), record->arena);
    else if (take(text, "type("))
        type = dv_cel_type_of(read_type(record, text), record->arena);
    else if (take(text, "wrapper("))
        type = dv_cel_wrapper_of(read_type(record, text), record->arena);
    else if (take(text, "map("))
        type = read_map(record, text);
    if (type && !take(text, ")"))
        give_up(record, "type");
    return type;
}

static const struct dv_cel_type *read_type(struct jsonl_record *record, dv_str *text)
{
    static const struct dv_cel_type *const simple[] = {
        &dv_cel_t_bool, &dv_cel_t_bytes,     &dv_cel_t_double,   &dv_cel_t_dyn,    &dv_cel_t_int,
        &dv_cel_t_any,  &dv_cel_t_timestamp, &dv_cel_t_duration, &dv_cel_t_string, &dv_cel_t_uint,
    };
    const struct dv_cel_type *type = read_inner(record, text);
    size_t close;

    if (type)
        return type;
    if (take(text, "message(")) {
        struct dv_cel_type *message = DV_NEW(record->arena, struct dv_cel_type);

        close = dv_str_find_char(*text, ')');
        message->kind = DV_CEL_T_OBJECT;
        message->name = dv_str_slice(*text, 0, close);
        *text = dv_str_slice(*text, close + 1, text->n);
        return message;
    }
    if (take(text, "null"))
        return &dv_cel_t_null;
    if (take(text, "any"))
        return &dv_cel_t_any;
    for (size_t i = 0; i < DV_COUNT(simple); i++)
        if (dv_str_starts_with(*text, simple[i]->name)) {
            *text = dv_str_slice(*text, simple[i]->name.n, text->n);
            return simple[i];
        }
    give_up(record, "type");
}

/* -- Values ---------------------------------------------------------------------------------- */

static struct dv_cel_val read_value(struct jsonl_record *record, const struct dv_json *json);

static dv_str read_text(struct jsonl_record *record, const struct dv_json *json)
{
    dv_str text;
    struct dv_err err;

    if (!dv_json_as_str(json, &text, &err))
        give_up(record, "text");
    return text;
}

static dv_str read_hex(struct jsonl_record *record, const struct dv_json *json)
{
    dv_str text = read_text(record, json);
    char *bytes = dv_arena_alloc_raw(record->arena, text.n / 2, 1);

    for (size_t i = 0; i + 1 < text.n; i += 2) {
        char pair[] = {text.p[i], text.p[i + 1], '\0'};

        bytes[i / 2] = (char)strtoul(pair, NULL, 16);
    }
    return (dv_str){bytes, text.n / 2};
}

static struct dv_cel_val read_list(struct jsonl_record *record, const struct dv_json *json)
{
    struct dv_cel_val *elements;
    struct dv_cel_val list = dv_cel_list_new(dv_json_n(json), record->arena, &elements);
    size_t n = 0;

    for (const struct dv_json *node = dv_json_first(json); node; node = dv_json_next(node))
        elements[n++] = read_value(record, node);
    return list;
}

static struct dv_cel_val read_map_value(struct jsonl_record *record, const struct dv_json *json)
{
    struct dv_cel_map *map = dv_cel_map_new((uint32_t)dv_json_n(json), record->arena);

    for (const struct dv_json *pair = dv_json_first(json); pair; pair = dv_json_next(pair)) {
        struct dv_cel_val key = read_value(record, dv_json_at(pair, 0));
        struct dv_cel_val value = read_value(record, dv_json_at(pair, 1));

        dv_cel_map_set(map, &key, &value, record->arena);
    }
    return (struct dv_cel_val){.kind = DV_CEL_MAP, .map = map};
}

static int64_t read_number(struct jsonl_record *record, const struct dv_json *json, const char *key)
{
    const struct dv_json *node = dv_json_get(json, dv_str_from_c(key));
    dv_str text = DV_STR_NONE;
    int64_t value = 0;
    struct dv_err err;

    if (node && !dv_json_as_i64(node, &value, &err) &&
        (!dv_json_as_str(node, &text, &err) || !dv_str_to_i64(text, &value)))
        give_up(record, "number");
    return value;
}

static struct dv_cel_val read_scalar(struct jsonl_record *record, const struct dv_json *json,
                                     dv_str kind)
{
    struct dv_cel_val val = dv_cel_null();
    struct dv_err err;
    bool is_ok = true;

    if (dv_str_eq(kind, DV_STR("bool"))) {
        val.kind = DV_CEL_BOOL;
        is_ok = dv_json_as_bool(json, &val.b, &err);
    } else if (dv_str_eq(kind, DV_STR("int"))) {
        val.kind = DV_CEL_INT;
        is_ok = dv_str_to_i64(read_text(record, json), &val.i);
    } else if (dv_str_eq(kind, DV_STR("uint"))) {
        val.kind = DV_CEL_UINT;
        is_ok = dv_str_to_u64(read_text(record, json), &val.u);
    } else if (dv_str_eq(kind, DV_STR("double"))) {
        val.kind = DV_CEL_DOUBLE;
        is_ok = dv_cel_parse_double(read_text(record, json), &val.d);
    } else {
        is_ok = dv_str_eq(kind, DV_STR("null"));
    }
    if (!is_ok)
        give_up(record, "value");
    return val;
}

static struct dv_cel_val read_value(struct jsonl_record *record, const struct dv_json *json)
{
    const struct dv_json *node = dv_json_first(json);
    dv_str kind = dv_json_key(node);

    if (dv_str_eq(kind, DV_STR("string")))
        return dv_cel_string(read_text(record, node));
    if (dv_str_eq(kind, DV_STR("bytes")))
        return dv_cel_bytes(read_hex(record, node));
    if (dv_str_eq(kind, DV_STR("list")))
        return read_list(record, node);
    if (dv_str_eq(kind, DV_STR("map")))
        return read_map_value(record, node);
    if (dv_str_eq(kind, DV_STR("type"))) {
        struct dv_cel_type *type = DV_NEW(record->arena, struct dv_cel_type);

        type->name = read_text(record, node);
        return dv_cel_type_val(type);
    }
    if (dv_str_eq(kind, DV_STR("timestamp")))
        return dv_cel_timestamp(read_number(record, node, "seconds"),
                                (int32_t)read_number(record, node, "nanos"));
    if (dv_str_eq(kind, DV_STR("duration")))
        return dv_cel_duration(read_number(record, node, "seconds") * 1000000000 +
                               read_number(record, node, "nanos"));
    return read_scalar(record, node, kind);
}

/* As the suite compares: of one kind, and NaN equals NaN. */
static bool is_same(const struct dv_cel_val *a, const struct dv_cel_val *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == DV_CEL_DOUBLE && isnan(a->d))
        return isnan(b->d);
    if (a->kind == DV_CEL_LIST && a->list->n == b->list->n) {
        for (uint32_t i = 0; i < a->list->n; i++)
            if (!is_same(&a->list->v[i], &b->list->v[i]))
                return false;
        return true;
    }
    return dv_cel_eq(a, b);
}

/* -- Cases ----------------------------------------------------------------------------------- */

static struct dv_cel_decls read_decls(struct jsonl_record *record)
{
    const struct dv_json *list = dv_json_get(record->json, DV_STR("typeEnv"));
    struct dv_cel_var *vars = DV_NEW_ARRAY(record->arena, struct dv_cel_var, dv_json_n(list));
    struct dv_cel_decls decls = {.vars = vars};

    if (dv_json_get(record->json, DV_STR("container")))
        decls.container = jsonl_str(record, "container");
    for (const struct dv_json *node = dv_json_first(list); node; node = dv_json_next(node)) {
        const struct dv_json *type = dv_json_get(node, DV_STR("type"));
        dv_str text;

        if (!type)
            continue;
        text = read_text(record, type);
        vars[decls.n_vars].name = read_text(record, dv_json_get(node, DV_STR("name")));
        vars[decls.n_vars++].type = read_type(record, &text);
    }
    return decls;
}

static const struct dv_cel_val *read_bindings(struct jsonl_record *record,
                                              const struct dv_cel_decls *decls)
{
    const struct dv_json *bindings = dv_json_get(record->json, DV_STR("bindings"));
    struct dv_cel_val *vals = DV_NEW_ARRAY(record->arena, struct dv_cel_val, decls->n_vars);

    for (size_t i = 0; i < decls->n_vars; i++) {
        const struct dv_json *value = dv_json_get(bindings, decls->vars[i].name);

        vals[i] = value ? read_value(record, value) : dv_cel_error(DV_STR("no such attribute"));
    }
    return vals;
}

static void compare_type(struct jsonl_record *record, const struct dv_cel_program *program,
                         const struct dv_json *want)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_cel_type_print(program->ast->type, true, &buf);
    jsonl_compare_str(record, "type", dv_buf_str(&buf), read_text(record, want));
}

static void compare_value(struct jsonl_record *record, const struct dv_cel_val *got,
                          const struct dv_json *want)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf got_text;
    DV_CLEANUP(dv_buf_fini) struct dv_buf want_text;
    struct dv_cel_val value = read_value(record, want);

    dv_buf_init(&got_text, TEXT_BYTES_MAX);
    dv_buf_init(&want_text, TEXT_BYTES_MAX);
    if (is_same(got, &value))
        return;
    dv_cel_val_print(got, &got_text);
    dv_cel_val_print(&value, &want_text);
    printf("%s:%u: %.*s: got %s, want %s\n", record->file, record->line,
           DV_FMT(jsonl_str(record, "expr")), dv_buf_c(&got_text), dv_buf_c(&want_text));
    record->has_failed = true;
}

static void replay_same(struct jsonl_record *record)
{
    const struct dv_json *want = dv_json_get(record->json, DV_STR("expect"));
    struct dv_cel_steps steps = {.skip_macros = jsonl_bool(record, "disableMacros"),
                                 .skip_check = jsonl_bool(record, "disableCheck")};
    struct dv_cel_decls decls = read_decls(record);
    struct dv_cel_run run = {.arena = record->arena,
                             .cost_max = COST_MAX,
                             .work_max = DV_CEL_WORK_MAX,
                             .memory_max = DV_CEL_MEMORY_MAX};
    struct dv_cel_issues issues = {.source = jsonl_str(record, "expr"), .arena = record->arena};
    struct dv_cel_program program;
    struct dv_cel_val got;
    bool is_ok =
        dv_cel_program_make(issues.source, &decls, &steps, record->arena, &issues, &program);
    bool wants_error = dv_json_get(want, DV_STR("error")) != NULL;

    if (!is_ok) {
        if (!wants_error) {
            jsonl_compare_str(record, "compiles", issues.list.v[0].text, DV_STR(""));
            printf("    %.*s\n", DV_FMT(issues.source));
        }
        return;
    }
    if (dv_json_get(want, DV_STR("type")))
        compare_type(record, &program, dv_json_get(want, DV_STR("type")));
    if (jsonl_bool(record, "checkOnly"))
        return;
    dv_cel_program_run(&program, read_bindings(record, &decls), &run, &got);
    if (wants_error && !dv_cel_is_error(&got)) {
        jsonl_compare_str(record, "error", DV_STR("a value"), DV_STR("an error"));
        printf("    %.*s\n", DV_FMT(issues.source));
    } else if (dv_json_get(want, DV_STR("value"))) {
        compare_value(record, &got, dv_json_get(want, DV_STR("value")));
    }
}

static void replay_refused(struct jsonl_record *record)
{
    struct dv_cel_steps steps = {.skip_macros = jsonl_bool(record, "disableMacros"),
                                 .skip_check = jsonl_bool(record, "disableCheck")};
    struct dv_cel_decls decls = read_decls(record);
    struct dv_cel_issues issues = {.source = jsonl_str(record, "expr"), .arena = record->arena};
    struct dv_cel_program program;

    if (!dv_cel_program_make(issues.source, &decls, &steps, record->arena, &issues, &program))
        return;
    jsonl_compare_str(record, "compiles", DV_STR("true"), DV_STR("false"));
    printf("    %.*s\n", DV_FMT(issues.source));
}

static void replay_case(struct jsonl_record *record)
{
    static const struct {
        const char *status;
        const char *why;
    } excluded[] = {
        {"not-applicable", "needs messages or functions of its own"              },
        {"differs",        "the reference gives another value"                   },
        {"no-error",       "the reference gives a value where an error is wanted"},
        {"eval-error",     "the reference fails where a value is wanted"         },
    };
    const struct dv_json *dra = dv_json_get(record->json, DV_STR("dra"));
    dv_str status = read_text(record, dv_json_get(dra, DV_STR("status")));

    if (dv_str_eq(status, DV_STR("same"))) {
        replay_same(record);
        return;
    }
    if (dv_str_eq(jsonl_str(record, "id"), DV_STR("parse/receiver_function_names/namespace"))) {
        printf("left out: parse/receiver_function_names/namespace: the reference knows a function "
               "of that name, of the authorizer, which no selector can reach\n");
        return;
    }
    for (size_t i = 0; i < DV_COUNT(excluded); i++) {
        if (dv_str_eq(status, dv_str_from_c(excluded[i].status))) {
            printf("left out: %.*s: %s\n", DV_FMT(jsonl_str(record, "id")), excluded[i].why);
            return;
        }
    }
    replay_refused(record);
}

int main(int argc, char **argv)
{
    static const struct jsonl_replay replays[] = {
        {{"cases.jsonl", {"expr", "expect"}, {NULL}}, replay_case}
    };

    return jsonl_main(argc, argv, replays, DV_COUNT(replays));
}
