/* select_print.c - selectors of the API as a client writes them in a query. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "resource/resource.h"
#include "resource/select.h"

#define TEXT_BYTES_MAX (1024u * 1024u)

/* One requirement of a selector: an expression, or a label that must have a value. */
struct part {
    dv_str key; /* first: they are sorted by it */
    dv_str value;
    const struct dv_api_label_selector_requirement *expression; /* NULL: it is a label */
};

static void print_values(const struct dv_api_label_selector_requirement *expression,
                         struct dv_arena *arena, struct dv_buf *buf)
{
    dv_str *values = DV_NEW_ARRAY(arena, dv_str, expression->n_values);

    if (expression->n_values > 0) {
        memcpy(values, expression->values, expression->n_values * sizeof(values[0]));
        qsort(values, expression->n_values, sizeof(values[0]), dv_str_compare);
    }
    dv_buf_add_char(buf, '(');
    for (size_t i = 0; i < expression->n_values; i++)
        dv_buf_printf(buf, "%s%.*s", i > 0 ? "," : "", DV_FMT(values[i]));
    dv_buf_add_char(buf, ')');
}

static void print_part(const struct part *part, struct dv_arena *arena, struct dv_buf *buf)
{
    dv_str operator= part->expression ? part->expression->operator: DV_STR_NONE;

    if (!part->expression) {
        dv_buf_printf(buf, "%.*s=%.*s", DV_FMT(part->key), DV_FMT(part->value));
    } else if (dv_str_eq(operator, DV_STR("Exists"))) {
        dv_buf_add(buf, part->key);
    } else if (dv_str_eq(operator, DV_STR("DoesNotExist"))) {
        dv_buf_printf(buf, "!%.*s", DV_FMT(part->key));
    } else {
        dv_buf_printf(buf, "%.*s %s ", DV_FMT(part->key),
                      dv_str_eq(operator, DV_STR("NotIn")) ? "notin" : "in");
        print_values(part->expression, arena, buf);
    }
}

dv_str dv_selector_print(const struct dv_api_label_selector *selector, struct dv_arena *arena)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    struct part *parts;
    size_t n = 0;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    if (!selector)
        return DV_STR_NONE;
    parts =
        DV_NEW_ARRAY(arena, struct part, selector->n_match_labels + selector->n_match_expressions);
    for (size_t i = 0; i < selector->n_match_labels; i++)
        parts[n++] = (struct part){.key = selector->match_labels[i].key,
                                   .value = selector->match_labels[i].value};
    for (size_t i = 0; i < selector->n_match_expressions; i++)
        parts[n++] = (struct part){.key = selector->match_expressions[i].key,
                                   .expression = &selector->match_expressions[i]};
    if (n > 0)
        qsort(parts, n, sizeof(parts[0]), dv_str_compare);
    for (size_t i = 0; i < n; i++) {
        dv_buf_add_c(&buf, i > 0 ? "," : "");
        print_part(&parts[i], arena, &buf);
    }
    return dv_str_copy(dv_buf_str(&buf), arena);
}
