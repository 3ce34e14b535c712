/* string_format.h - "%s has %d".format([...]). */
#ifndef DV_CEL_STRING_FORMAT_H
#define DV_CEL_STRING_FORMAT_H

#include <stdbool.h>

#include "base/str.h"

struct dv_cel_run;
struct dv_cel_val;

/* Formats; `args` are the format and the list. */
void dv_cel_string_format(struct dv_cel_run *run, const struct dv_cel_val *args,
                          struct dv_cel_val *out);

/* ---- format_clause.c ---- */

struct dv_cel_clause {
    char verb; /* one of sdfebxXo */
    int precision;
};

/* Takes "%.3f" after its percent sign. Returns NULL, or what is wrong. */
const char *dv_cel_format_take_clause(dv_str *rest, struct dv_cel_clause *clause);
/* Takes the text up to the next clause, with %% as %. False at the end. */
bool dv_cel_format_take_text(dv_str *rest, dv_str *text, bool *is_percent);
/* Says what is wrong when a value does not fit the verb. */
const char *dv_cel_format_misuse(char verb);

#endif
