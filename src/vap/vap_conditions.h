/* vap_conditions.h - match conditions: expressions that say whether a policy or a webhook is to be
 * asked about a write. */
#ifndef DV_VAP_CONDITIONS_H
#define DV_VAP_CONDITIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "vap/vap.h" /* IWYU pragma: export */

struct dv_api_match_condition;
struct dv_arena;
struct dv_vap_asking;
struct dv_vap_conditions;

/* Compiles conditions into `arena`. What does not compile fails when it is evaluated. */
struct dv_vap_conditions *dv_vap_conditions_new(const struct dv_api_match_condition *conditions,
                                                size_t n, bool has_params, struct dv_arena *arena);
bool dv_vap_conditions_are_none(const struct dv_vap_conditions *conditions);

enum dv_vap_conditions_outcome {
    DV_VAP_CONDITIONS_TRUE,
    DV_VAP_CONDITIONS_FALSE,  /* one is, whatever the others are */
    DV_VAP_CONDITIONS_FAILED, /* none is false, and one fails */
    DV_VAP_CONDITIONS_STOPPED,
};

/* Conditions that are held against a write, in steps as a judgement is. Keeps what is given, and a
 * copy of `world`; the objects are shown in `version`. */
struct dv_vap_asking *dv_vap_asking_new(const struct dv_vap_conditions *conditions,
                                        const struct dv_vap_write *write,
                                        const struct dv_vap_world *world,
                                        const struct dv_api_version *version);
void dv_vap_asking_free(struct dv_vap_asking *asking); /* NULL is fine */
enum dv_vap_step dv_vap_asking_run(struct dv_vap_asking *asking, enum dv_vap_place place);
void dv_vap_asking_decide(struct dv_vap_asking *asking);
/* What came out, once it is done; *problem says why they failed, borrowed. */
enum dv_vap_conditions_outcome dv_vap_asking_outcome(const struct dv_vap_asking *asking,
                                                     dv_str *problem);

#endif
