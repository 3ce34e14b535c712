#include "vap/vap_evaluate.h"

#include "base/arena.h"
#include "base/str.h"
#include "resource/cel_document.h"
#include "resource/resource.h"
#include "vap/vap_document.h"
#include "vap/vap_index.h"

/* How many hundreds of rounds of comprehensions the loop has time for. */
#define LOOP_PATIENCE 10u

/* ---- the authorizer ---- */

static bool is_same_check(const struct dv_cel_check *a, const struct dv_cel_check *b)
{
    return dv_str_eq(a->verb, b->verb) && dv_str_eq(a->group, b->group) &&
           dv_str_eq(a->resource, b->resource) && dv_str_eq(a->subresource, b->subresource) &&
           dv_str_eq(a->namespace, b->namespace) && dv_str_eq(a->name, b->name) &&
           dv_str_eq(a->path, b->path) && dv_str_eq(a->field_selector, b->field_selector) &&
           dv_str_eq(a->label_selector, b->label_selector) &&
           dv_str_eq(a->account_namespace, b->account_namespace) &&
           dv_str_eq(a->account_name, b->account_name);
}

static struct dv_cel_check copy_check(const struct dv_cel_check *check, struct dv_arena *arena)
{
    return (struct dv_cel_check){
        .verb = dv_str_copy(check->verb, arena),
        .group = dv_str_copy(check->group, arena),
        .resource = dv_str_copy(check->resource, arena),
        .subresource = dv_str_copy(check->subresource, arena),
        .namespace = dv_str_copy(check->namespace, arena),
        .name = dv_str_copy(check->name, arena),
        .path = dv_str_copy(check->path, arena),
        .field_selector = dv_str_copy(check->field_selector, arena),
        .label_selector = dv_str_copy(check->label_selector, arena),
        .account_namespace = dv_str_copy(check->account_namespace, arena),
        .account_name = dv_str_copy(check->account_name, arena),
    };
}

static const struct dv_vap_answer *answer(struct dv_vap_evaluation *e,
                                          const struct dv_cel_check *check)
{
    struct dv_vap_answer *answer = dv_vec_add_in(&e->answers, e->arena);

    answer->check = copy_check(check, e->arena);
    e->world.decide(e->world.ctx, &answer->check, e->arena, &answer->decision);
    return answer;
}

static bool decide(void *ctx, const struct dv_cel_check *check, struct dv_arena *arena,
                   struct dv_cel_decision *decision)
{
    struct dv_vap_evaluation *e = ctx;

    (void)arena;
    for (size_t i = 0; i < e->answers.n; i++)
        if (is_same_check(&e->answers.v[i].check, check)) {
            *decision = e->answers.v[i].decision;
            return true;
        }
    if (!e->is_on_loop) {
        e->wanted = copy_check(check, e->arena);
        e->is_wanting = true;
        return false;
    }
    *decision = answer(e, check)->decision;
    return true;
}

void dv_vap_evaluation_decide(struct dv_vap_evaluation *e)
{
    (void)answer(e, &e->wanted);
    e->is_wanting = false;
}

/* ---- runs ---- */

static bool is_stopped(void *ctx)
{
    struct dv_vap_evaluation *e = ctx;

    return e->is_on_loop && ++e->n_rounds > LOOP_PATIENCE;
}

void dv_vap_evaluation_init(struct dv_vap_evaluation *e, const struct dv_vap_write *write,
                            const struct dv_vap_world *world, struct dv_arena *arena)
{
    *e = (struct dv_vap_evaluation){.write = write, .world = *world, .arena = arena};
    e->scratch = dv_arena_new();
    e->authorizer = (struct dv_cel_authorizer){
        .decide = decide,
        .ctx = e,
        .request = {.group = write->version->group,
                    .resource = write->kind->plural,
                    .subresource = write->subresource,
                    .namespace = write->namespace,
                    .name = write->name},
    };
}

void dv_vap_evaluation_fini(struct dv_vap_evaluation *e)
{
    dv_arena_free(e->scratch);
}

void dv_vap_evaluation_begin(struct dv_vap_evaluation *e, enum dv_vap_place place)
{
    dv_arena_reset(e->scratch);
    e->shown = NULL;
    e->inputs =
        (struct dv_cel_inputs){.authorizer = &e->authorizer, .is_stopped = is_stopped, .ctx = e};
    e->n_rounds = 0;
    e->is_on_loop = place == DV_VAP_ON_LOOP;
}

enum dv_vap_step dv_vap_evaluation_needs(const struct dv_vap_evaluation *e)
{
    return e->is_wanting ? DV_VAP_NEEDS_DECISION : DV_VAP_NEEDS_WORKER;
}

void dv_vap_evaluation_show(struct dv_vap_evaluation *e, const struct dv_api_version *version)
{
    const struct dv_vap_write *write = e->write;

    if (e->shown == version)
        return;
    e->shown = version;
    e->inputs.object = e->inputs.old_object = NULL;
    if (write->other)
        e->inputs.object = dv_cel_from_json(write->other, e->scratch);
    else if (write->object)
        e->inputs.object = dv_vap_from_object(version->message, write->object, version,
                                              write->kind->name, e->scratch);
    if (write->old)
        e->inputs.old_object = dv_vap_from_object(version->message, write->old, version,
                                                  write->kind->name, e->scratch);
    e->inputs.request = dv_cel_from_json(dv_vap_request(write, version, e->scratch), e->scratch);
}

void dv_vap_evaluation_open(struct dv_vap_evaluation *e, const struct dv_cel_policy *cel,
                            const struct dv_cel_val *namespace_object, uint64_t cost_max)
{
    e->inputs.namespace_object = namespace_object;
    e->session = dv_cel_session_new(cel, &e->inputs, e->scratch);
    e->cost_left = cost_max;
    e->is_out_of_budget = false;
}

enum dv_cel_outcome dv_vap_evaluate(struct dv_vap_evaluation *e, const struct dv_vap_rule *rule,
                                    struct dv_cel_gave *gave)
{
    enum dv_cel_outcome outcome;

    if (!rule->rule) {
        *gave = (struct dv_cel_gave){
            .s = dv_str_printf(e->scratch, "compilation error: %.*s", DV_FMT(rule->problem))};
        return DV_CEL_GAVE_ERROR;
    }
    outcome = dv_cel_session_eval(e->session, rule->rule, gave);
    if (outcome == DV_CEL_STOPPED)
        return outcome;
    e->is_out_of_budget = gave->cost > e->cost_left;
    e->cost_left -= e->is_out_of_budget ? e->cost_left : gave->cost;
    if (outcome == DV_CEL_GAVE_ERROR)
        gave->s = dv_str_printf(e->scratch, "expression '%.*s' resulted in error: %.*s",
                                DV_FMT(rule->text), DV_FMT(gave->s));
    return outcome;
}
