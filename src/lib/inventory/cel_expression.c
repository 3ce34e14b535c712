/* cel_expression.c - selectors for other programs. */
#include <stdlib.h>

#include "alloc/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cel/cel.h"
#include "davit/cel.h"
#include "lib/inventory/alloc_text.h"
#include "resource/resource.h"

struct davit_cel {
    struct dv_arena *arena;
    const struct dv_cel_expr *expr;
    bool has_lists;
};

static struct dv_cel_options options_of(const struct davit_cel_options *options)
{
    struct davit_cel_options own = options ? *options : (struct davit_cel_options){0};

    return (struct dv_cel_options){
        .env = own.is_new ? DV_CEL_ENV_NEW : DV_CEL_ENV_STORED,
        .features = {own.consumable_capacity, own.list_attributes},
    };
}

struct davit_cel *davit_cel_compile(const char *expression, const struct davit_cel_options *options,
                                    struct davit_error *error)
{
    struct dv_cel_options own = options_of(options);
    struct davit_cel *cel = DV_ALLOC(struct davit_cel);
    struct dv_err err;

    cel->arena = dv_arena_new();
    cel->has_lists = own.features.list_type_attributes;
    cel->expr = dv_cel_compile(dv_str_from_c(expression), &own, cel->arena, &err);
    if (cel->expr)
        return cel;
    (void)dv_lib_tell(error, &err);
    davit_cel_free(cel);
    return NULL;
}

void davit_cel_free(struct davit_cel *cel)
{
    if (!cel)
        return;
    dv_arena_free(cel->arena);
    free(cel);
}

char *davit_cel_problems(const char *expression, const struct davit_cel_options *options)
{
    struct dv_cel_options own = options_of(options);
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_err err;

    dv_buf_init(&buf, DV_LIB_ANSWER_BYTES_MAX);
    dv_cel_explain_error(dv_str_from_c(expression), &own, &buf);
    return buf.n ? dv_lib_answer(&buf, &err) : NULL;
}

char *davit_cel_print(const struct davit_cel *cel)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct dv_err err;

    dv_buf_init(&buf, DV_LIB_ANSWER_BYTES_MAX);
    dv_cel_print(cel->expr, &buf);
    return dv_lib_answer(&buf, &err);
}

uint64_t davit_cel_max_cost(const struct davit_cel *cel)
{
    return dv_cel_max_cost(cel->expr);
}

/* Reads a device. NULL: it cannot be read. */
static struct dv_cel_device *read_device(const struct davit_cel *cel, const char *driver,
                                         const char *device, struct dv_arena *arena,
                                         struct dv_err *err)
{
    const struct dv_json *json = dv_lib_parse(device, arena, err);
    const struct dv_api_device *api =
        json ? dv_lib_read_part(json, &dv_message_device, arena, err) : NULL;

    if (api)
        return dv_alloc_cel_device(api, dv_str_from_c(driver), cel->has_lists, arena);
    (void)dv_wrap(err, "the device");
    return NULL;
}

bool davit_cel_eval(const struct davit_cel *cel, const char *driver, const char *device,
                    bool *is_match, uint64_t *cost, struct davit_error *error)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    struct dv_cel_budget budget = {.cost_max = DV_CEL_COST_MAX};
    const struct dv_cel_device *prepared;
    struct dv_err err;
    bool is_ok;

    prepared = read_device(cel, driver, device, arena, &err);
    is_ok = prepared && dv_cel_eval(cel->expr, prepared, &budget, arena, is_match, &err);
    if (cost)
        *cost = budget.cost;
    return is_ok || dv_lib_tell(error, &err);
}

static void add_member(struct dv_buf *buf, const char *key, dv_str value)
{
    dv_buf_printf(buf, "\"%s\":", key);
    dv_buf_add_json(buf, value);
}

char *davit_cel_explain(const struct davit_cel *cel, const char *driver, const char *device,
                        struct davit_error *error)
{
    static const char *const verdicts[] = {
        [DV_CEL_MATCHES] = "matches",
        [DV_CEL_DIFFERS] = "differs",
        [DV_CEL_FAILS] = "fails",
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    const struct dv_cel_device *prepared;
    struct dv_cel_report report;
    struct dv_err err;
    char *text;

    dv_buf_init(&buf, DV_LIB_ANSWER_BYTES_MAX);
    prepared = read_device(cel, driver, device, arena, &err);
    if (!prepared) {
        (void)dv_lib_tell(error, &err);
        return NULL;
    }
    dv_cel_explain(cel->expr, prepared, arena, &report);
    dv_buf_printf(&buf, "{\"verdict\":\"%s\"", verdicts[report.verdict]);
    if (report.verdict != DV_CEL_MATCHES) {
        dv_buf_add_char(&buf, ',');
        add_member(&buf, "part", report.part);
    }
    if (report.verdict == DV_CEL_FAILS) {
        dv_buf_add_char(&buf, ',');
        add_member(&buf, "problem", report.problem);
    }
    dv_buf_add_c(&buf, ",\"seen\":[");
    for (size_t i = 0; report.verdict != DV_CEL_MATCHES && i < report.n_seen; i++) {
        dv_buf_add_c(&buf, i ? ",{" : "{");
        add_member(&buf, "expression", report.seen[i].expression);
        dv_buf_add_char(&buf, ',');
        add_member(&buf, "value", report.seen[i].value);
        dv_buf_add_char(&buf, '}');
    }
    dv_buf_add_c(&buf, "]}");
    text = dv_lib_answer(&buf, &err);
    if (!text)
        (void)dv_lib_tell(error, &err);
    return text;
}
