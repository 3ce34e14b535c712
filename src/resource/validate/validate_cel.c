/* validate_cel.c - selectors: their length, whether they compile, what they may cost. */
#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "cel/cel.h"
#include "resource/validate/checks.h"

/* Problems quote the expression, line by line. */
#define TEXT_BYTES_MAX (1024u * 1024u)

/* Takes the message out of "ERROR: <input>:1:3: message", without the lines that follow. */
static dv_str message_of(dv_str explanation)
{
    dv_str line = dv_str_slice(explanation, 0, dv_str_find_char(explanation, '\n'));
    dv_str part = DV_STR("");

    /* "ERROR", " <input>", the line, the column */
    for (size_t i = 0; i < 4 && line.n > 0; i++)
        (void)dv_str_split(&line, ':', &part);
    return dv_str_trim(line);
}

/* Explains why an expression is refused. One of another type than bool compiles in the reference,
 * and is refused after that. */
static void explain(struct dv_problems *problems, const struct dv_field_path *path,
                    dv_str expression, const struct dv_cel_options *options)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;
    dv_str message;

    dv_buf_init(&buf, TEXT_BYTES_MAX);
    dv_cel_explain_error(expression, options, &buf);
    message = message_of(dv_buf_str(&buf));
    if (dv_str_starts_with(message, DV_STR("must evaluate to bool ")))
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "expression", dv_bad_str(expression),
                       "%.*s", DV_FMT(message));
    else
        dv_problem_add(problems, DV_PROBLEM_INVALID, path, "expression", dv_bad_str(expression),
                       "compilation failed: %.*s", DV_FMT(dv_buf_str(&buf)));
}

void dv_check_cel(struct dv_problems *problems, const struct dv_field_path *path, dv_str expression,
                  bool is_stored)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = NULL;
    const struct dv_cel_options options = {
        .env = is_stored ? DV_CEL_ENV_STORED : DV_CEL_ENV_NEW,
        .features = {.consumable_capacity = true},
    };
    const struct dv_cel_expr *compiled;
    struct dv_err err;

    if (expression.n > DV_CEL_EXPRESSION_BYTES_MAX) {
        dv_too_long(problems, path, "expression", DV_CEL_EXPRESSION_BYTES_MAX);
        return;
    }
    arena = dv_arena_new();
    compiled = dv_cel_compile(expression, &options, arena, &err);
    if (!compiled)
        explain(problems, path, expression, &options);
    else if (dv_cel_max_cost(compiled) > DV_CEL_COST_MAX)
        dv_problem_add(problems, DV_PROBLEM_FORBIDDEN, path, "expression", dv_bad_none(),
                       "too complex, exceeds cost limit");
}
