/* device_alloc_rules.h - the rules of golden/device-alloc's README, checked on outcomes alone.
 * It is in the corpus, corpora/device-alloc.tar.xz; so are the numbers of rules in comments.
 *
 * Nothing of the module under test is used: what plugins list, what pods ask for and what is held
 * is followed from ops and outcomes. */
#ifndef DV_GOLDEN_DEVICE_ALLOC_RULES_H
#define DV_GOLDEN_DEVICE_ALLOC_RULES_H

#include <stdbool.h>

struct dv_arena;
struct dv_err;
struct dv_json;
struct rules;

/* In `arena`. */
struct rules *rules_new(struct dv_arena *arena);

/* False: the outcome breaks a rule, which `err` names. */
bool rules_check(struct rules *rules, const struct dv_json *op, const struct dv_json *outcome,
                 struct dv_err *err);

#endif
