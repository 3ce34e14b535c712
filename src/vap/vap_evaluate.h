/* vap_evaluate.h - evaluating expressions about a write: what they see, what they may cost, and the
 * questions to the authorizer that a worker cannot answer. */
#ifndef DV_VAP_EVALUATE_H
#define DV_VAP_EVALUATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "base/vec.h"
#include "cel/cel_policy.h"
#include "vap/vap_conditions.h"

struct dv_api_version;
struct dv_arena;
struct dv_vap_rule;

#define DV_VAP_OUT_OF_BUDGET                                                                       \
    "validation failed due to running out of cost budget, no further validation rules will be run"

struct dv_vap_answer {
    struct dv_cel_check check;
    struct dv_cel_decision decision;
};

struct dv_vap_evaluation {
    const struct dv_vap_write *write;
    struct dv_vap_world world;
    struct dv_arena *arena;               /* of who evaluates; has the authorizer's answers */
    struct dv_arena *scratch;             /* of one run */
    DV_VEC(struct dv_vap_answer) answers; /* of the authorizer */
    struct dv_cel_check wanted;           /* the question that a worker has ended with */
    bool is_wanting;
    bool is_on_loop;
    unsigned n_rounds;
    /* The version of the objects in `inputs`: mostly the next ones are to be shown in it too. */
    const struct dv_api_version *shown;
    struct dv_cel_inputs inputs;
    struct dv_cel_authorizer authorizer;
    struct dv_cel_session *session;
    uint64_t cost_left;
    bool is_out_of_budget;
};

void dv_vap_evaluation_init(struct dv_vap_evaluation *e, const struct dv_vap_write *write,
                            const struct dv_vap_world *world, struct dv_arena *arena);
void dv_vap_evaluation_fini(struct dv_vap_evaluation *e);
/* Begins a run; nothing of an earlier one is left but the authorizer's answers. */
void dv_vap_evaluation_begin(struct dv_vap_evaluation *e, enum dv_vap_place place);
/* Shows the objects in the version. */
void dv_vap_evaluation_show(struct dv_vap_evaluation *e, const struct dv_api_version *version);
/* Opens a session for rules of `cel`, which may cost that much together. */
void dv_vap_evaluation_open(struct dv_vap_evaluation *e, const struct dv_cel_policy *cel,
                            const struct dv_cel_val *namespace_object, uint64_t cost_max);
/* Evaluates a rule and takes its cost off. An error is in gave->s, as it is told. */
enum dv_cel_outcome dv_vap_evaluate(struct dv_vap_evaluation *e, const struct dv_vap_rule *rule,
                                    struct dv_cel_gave *gave);
enum dv_vap_conditions_outcome dv_vap_conditions_check(struct dv_vap_evaluation *e,
                                                       const struct dv_vap_conditions *conditions,
                                                       dv_str *problem);
/* What a run that was stopped needs. */
enum dv_vap_step dv_vap_evaluation_needs(const struct dv_vap_evaluation *e);
/* Answers, on the loop, the question that a worker has ended with. */
void dv_vap_evaluation_decide(struct dv_vap_evaluation *e);

#endif
