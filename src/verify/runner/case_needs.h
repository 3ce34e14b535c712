/* case_needs.h - which cases apply to a driver, and why others do not. */
#ifndef DV_VERIFY_CASE_NEEDS_H
#define DV_VERIFY_CASE_NEEDS_H

#include <stdbool.h>

#include "base/defs.h"

struct dv_err;
struct dv_facts;
struct dv_verify_case;
struct dv_verify_options;

/* Whether --require names what a driver may offer or not: "slices". */
bool dv_needs_is_required(const struct dv_verify_options *options, const char *name);
/* Why a case does not apply; NULL: it does. `facts` NULL: the probe has failed. */
const char *dv_needs_miss(const struct dv_verify_options *options, const struct dv_facts *facts,
                          const struct dv_verify_case *test);
/* Whether the hooks of the command line are such that cases use, and can be run. */
DV_CHECKED bool dv_needs_check_hooks(const struct dv_verify_options *options, struct dv_err *err);

#endif
