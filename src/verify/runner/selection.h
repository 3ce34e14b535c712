/* selection.h - the cases that --only and --skip leave, in the order of the table. */
#ifndef DV_VERIFY_SELECTION_H
#define DV_VERIFY_SELECTION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "verify/verify.h"

struct dv_verify_case;

/* Where a walk over the cases is; begin with zeroes. */
struct dv_selection {
    size_t group;
    size_t place;
};

/* NULL: those were all. */
const struct dv_verify_case *dv_selection_next(const struct dv_verify_options *options,
                                               struct dv_selection *at);
/* Whether --only names the case itself, and not a beginning. */
bool dv_selection_is_named(const struct dv_verify_options *options, const char *id);
/* Whether --require names the case, itself or by a beginning: it must not be skipped. */
bool dv_selection_is_required(const struct dv_verify_options *options, const char *id);
/* The first pattern of --only, --skip or --require that no case of the kind has; empty: all have
 * some. */
dv_str dv_selection_stranger(const struct dv_verify_options *options);

#endif
