#include "vap/vap_conditions.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "cel/cel_policy.h"
#include "resource/resource.h"
#include "vap/vap_evaluate.h"
#include "vap/vap_index.h"

/* What the conditions of a policy or a webhook may cost together. */
#define COST_MAX 2500000u
#define TEXT_BYTES_MAX (64u * 1024u)

struct dv_vap_conditions {
    struct dv_cel_policy *cel; /* match conditions know no variables */
    struct dv_vap_rule *v;
    size_t n;
};

struct dv_vap_conditions *dv_vap_conditions_new(const struct dv_api_match_condition *conditions,
                                                size_t n, bool has_params, struct dv_arena *arena)
{
    static const struct dv_cel_rule_options how = {DV_CEL_WANTS_BOOL, true};
    const struct dv_cel_policy_options options = {has_params, false};
    struct dv_vap_conditions *compiled = DV_NEW(arena, struct dv_vap_conditions);

    compiled->cel = dv_cel_policy_new(&options, arena);
    compiled->v = DV_NEW_ARRAY(arena, struct dv_vap_rule, n + 1);
    compiled->n = n;
    for (size_t i = 0; i < n; i++)
        compiled->v[i] =
            dv_vap_rule_of(compiled->cel, dv_str_trim(conditions[i].expression), how, arena);
    return compiled;
}

bool dv_vap_conditions_are_none(const struct dv_vap_conditions *conditions)
{
    return conditions->n == 0;
}

/* A condition that is false counts before one that fails. */
enum dv_vap_conditions_outcome dv_vap_conditions_check(struct dv_vap_evaluation *e,
                                                       const struct dv_vap_conditions *conditions,
                                                       dv_str *problem)
{
    size_t n_errors = 0;
    DV_CLEANUP(dv_buf_fini) struct dv_buf errors;

    dv_buf_init(&errors, TEXT_BYTES_MAX);
    if (conditions->n > 0) /* they do not see the namespace */
        dv_vap_evaluation_open(e, conditions->cel, NULL, COST_MAX);
    for (size_t i = 0; i < conditions->n; i++) {
        struct dv_cel_gave gave;
        enum dv_cel_outcome outcome = dv_vap_evaluate(e, &conditions->v[i], &gave);

        if (outcome == DV_CEL_STOPPED)
            return DV_VAP_CONDITIONS_STOPPED;
        if (e->is_out_of_budget) {
            *problem = DV_STR(DV_VAP_OUT_OF_BUDGET);
            return DV_VAP_CONDITIONS_FAILED;
        }
        if (outcome == DV_CEL_GAVE_BOOL && !gave.b)
            return DV_VAP_CONDITIONS_FALSE;
        if (outcome == DV_CEL_GAVE_ERROR)
            dv_buf_printf(&errors, "%s%.*s", n_errors++ > 0 ? ", " : "", DV_FMT(gave.s));
    }
    if (n_errors == 0)
        return DV_VAP_CONDITIONS_TRUE;
    *problem = dv_str_printf(e->scratch, n_errors > 1 ? "[%s]" : "%s", dv_buf_c(&errors));
    return DV_VAP_CONDITIONS_FAILED;
}

/* ---- conditions alone ---- */

struct dv_vap_asking {
    struct dv_vap_evaluation evaluation;
    struct dv_arena *arena;
    const struct dv_vap_conditions *conditions;
    const struct dv_api_version *version;
    enum dv_vap_conditions_outcome outcome;
    dv_str problem;
};

struct dv_vap_asking *dv_vap_asking_new(const struct dv_vap_conditions *conditions,
                                        const struct dv_vap_write *write,
                                        const struct dv_vap_world *world,
                                        const struct dv_api_version *version)
{
    struct dv_vap_asking *asking = DV_ALLOC(struct dv_vap_asking);

    asking->arena = dv_arena_new();
    asking->conditions = conditions;
    asking->version = version;
    dv_vap_evaluation_init(&asking->evaluation, write, world, asking->arena);
    return asking;
}

void dv_vap_asking_free(struct dv_vap_asking *asking)
{
    if (!asking)
        return;
    dv_vap_evaluation_fini(&asking->evaluation);
    dv_arena_free(asking->arena);
    free(asking);
}

enum dv_vap_step dv_vap_asking_run(struct dv_vap_asking *asking, enum dv_vap_place place)
{
    struct dv_vap_evaluation *e = &asking->evaluation;

    dv_vap_evaluation_begin(e, place);
    dv_vap_evaluation_show(e, asking->version);
    asking->outcome = dv_vap_conditions_check(e, asking->conditions, &asking->problem);
    return asking->outcome == DV_VAP_CONDITIONS_STOPPED ? dv_vap_evaluation_needs(e) : DV_VAP_DONE;
}

void dv_vap_asking_decide(struct dv_vap_asking *asking)
{
    dv_vap_evaluation_decide(&asking->evaluation);
}

enum dv_vap_conditions_outcome dv_vap_asking_outcome(const struct dv_vap_asking *asking,
                                                     dv_str *problem)
{
    if (asking->outcome == DV_VAP_CONDITIONS_FAILED)
        *problem = asking->problem;
    return asking->outcome;
}
