/* expr.h - what a compiled selector is, for this module's files and tests. */
#ifndef DV_CEL_EXPR_H
#define DV_CEL_EXPR_H

#include "cel/plan/compile.h"

struct dv_cel_expr {
    struct dv_cel_program program;
};

#endif
