/* cel_policy_env.h - what a policy's environment is, for the files that compile in it and evaluate
 * in it. */
#ifndef DV_CEL_POLICY_ENV_H
#define DV_CEL_POLICY_ENV_H

#include <stdbool.h>

#include "base/str.h"
#include "base/vec.h"
#include "cel/plan/compile.h"

struct dv_arena;

/* The variables of the environment; one that is not declared has no name. */
enum dv_cel_policy_var {
    DV_CEL_VAR_OBJECT,
    DV_CEL_VAR_OLD_OBJECT,
    DV_CEL_VAR_REQUEST,
    DV_CEL_VAR_NAMESPACE,
    DV_CEL_VAR_PARAMS,
    DV_CEL_VAR_AUTHORIZER,
    DV_CEL_VAR_REQUEST_RESOURCE,
    DV_CEL_VAR_VARIABLES,
    DV_CEL_N_POLICY_VARS,
};

struct dv_cel_rule {
    struct dv_cel_program program;
};

struct dv_cel_variable {
    dv_str name;
    const struct dv_cel_rule *rule; /* NULL: it does not compile */
    dv_str problem;                 /* then, why */
};

struct dv_cel_policy {
    struct dv_arena *arena;
    bool has_params;
    bool has_variables;
    bool is_schema;
    bool has_old; /* of a schema */
    DV_VEC(struct dv_cel_variable) variables;
    DV_VEC(struct dv_cel_var) fields; /* the same, with their types */
};

#endif
