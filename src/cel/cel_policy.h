/* cel_policy.h - expressions of admission policies: over the object that is written, the old one,
 * the request, parameters, the namespace, and variables of the policy itself.
 *
 *     struct dv_cel_policy *policy = dv_cel_policy_new(&options, arena);
 *     const struct dv_cel_rule *rule = dv_cel_policy_compile(policy, text, how, arena, &problem);
 *
 *     struct dv_cel_session *session = dv_cel_session_new(policy, &inputs, arena);
 *     switch (dv_cel_session_eval(session, rule, &result)) ...
 *
 * Objects have no static types: what is not there is found when the expression runs. A policy and
 * its rules are immutable once they are made, and any thread may use them; a session is for one
 * thread at a time. */
#ifndef DV_CEL_POLICY_H
#define DV_CEL_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_buf;
struct dv_cel_policy;
struct dv_cel_rule;
struct dv_cel_session;
struct dv_cel_tree;
struct dv_cel_val;

/* What one expression may cost. */
#define DV_CEL_RULE_COST_MAX 1000000u

/* -- Compiling ------------------------------------------------------------------------------- */

struct dv_cel_policy_options {
    bool has_params;    /* `params` is declared */
    bool has_variables; /* `variables` is, also before the first of them has been added */
};

struct dv_cel_policy *dv_cel_policy_new(const struct dv_cel_policy_options *options,
                                        struct dv_arena *arena);
/* The environment of a rule in a schema: nothing is declared but `self`, the object, and with
 * `has_old` `oldSelf`, the old one. */
struct dv_cel_policy *dv_cel_policy_new_schema(bool has_old, struct dv_arena *arena);

/* What an expression has to give. */
enum dv_cel_wanted {
    DV_CEL_WANTS_BOOL,
    DV_CEL_WANTS_STRING,
    DV_CEL_WANTS_STRING_OR_NULL,
    DV_CEL_WANTS_ANYTHING,
};

struct dv_cel_rule_options {
    enum dv_cel_wanted wanted;
    bool has_authorizer; /* `authorizer` and `authorizer.requestResource` are declared */
};

/* Compiles `text` into `arena`, with the variables that have been added so far. NULL: it does not
 * compile, or gives something else; `problem` tells as the API does: "compilation failed: ERROR:
 * ..." or "must evaluate to bool but got int". */
const struct dv_cel_rule *dv_cel_policy_compile(const struct dv_cel_policy *policy, dv_str text,
                                                struct dv_cel_rule_options how,
                                                struct dv_arena *arena, struct dv_buf *problem);
/* Adds a variable, which the expressions that are compiled later may use. False: its text does not
 * compile, and `problem` tells; it is declared all the same. */
DV_CHECKED bool dv_cel_policy_add_variable(struct dv_cel_policy *policy, dv_str name, dv_str text,
                                           struct dv_buf *problem);
/* Whether the text can be the name of a variable. */
bool dv_cel_is_identifier(dv_str text);

/* -- Values ---------------------------------------------------------------------------------- */

/* Makes a value from what another module knows: begun and ended like the text of a document. Texts
 * are borrowed, and live as long as the value. */
struct dv_cel_tree *dv_cel_tree_new(struct dv_arena *arena);
void dv_cel_tree_null(struct dv_cel_tree *tree);
void dv_cel_tree_bool(struct dv_cel_tree *tree, bool value);
void dv_cel_tree_int(struct dv_cel_tree *tree, int64_t value);
void dv_cel_tree_double(struct dv_cel_tree *tree, double value);
void dv_cel_tree_string(struct dv_cel_tree *tree, dv_str value);
/* `n` is the number of elements or entries, all of which have to follow before the end. */
void dv_cel_tree_begin_list(struct dv_cel_tree *tree, size_t n);
void dv_cel_tree_begin_map(struct dv_cel_tree *tree, size_t n);
void dv_cel_tree_key(struct dv_cel_tree *tree, dv_str key);
void dv_cel_tree_end(struct dv_cel_tree *tree);
/* The value, once all that was begun has ended. */
const struct dv_cel_val *dv_cel_tree_value(const struct dv_cel_tree *tree);

/* -- Evaluating ------------------------------------------------------------------------------ */

/* What an authorizer is asked: a verb on a resource, or on a path. */
struct dv_cel_check {
    dv_str verb;
    dv_str group;
    dv_str resource;
    dv_str subresource;
    dv_str namespace;
    dv_str name;
    dv_str path; /* not empty: it is asked for this, and not for a resource */
    dv_str field_selector;
    dv_str label_selector;
    /* Not empty: it is asked for this service account, and not for who makes the request. */
    dv_str account_namespace;
    dv_str account_name;
};

struct dv_cel_decision {
    bool is_allowed;
    dv_str reason;
    dv_str error; /* not empty: it could not be decided */
};

struct dv_cel_authorizer {
    /* Decides, with texts in `arena`. False: that cannot be told now, which ends the evaluation
     * with DV_CEL_STOPPED. */
    bool (*decide)(void *ctx, const struct dv_cel_check *check, struct dv_arena *arena,
                   struct dv_cel_decision *decision);
    void *ctx;
    struct dv_cel_check request; /* what authorizer.requestResource is about */
};

/* What expressions see; NULL is null. */
struct dv_cel_inputs {
    const struct dv_cel_val *object;
    const struct dv_cel_val *old_object;
    bool is_old_optional; /* the old object is an optional value: none, or one of it */
    const struct dv_cel_val *request;
    const struct dv_cel_val *params;
    const struct dv_cel_val *namespace_object;
    const struct dv_cel_authorizer *authorizer; /* must be there when a rule uses it */
    /* Asked every hundred rounds of comprehensions: true ends the evaluation with DV_CEL_STOPPED.
     * NULL: nobody stops it. */
    bool (*is_stopped)(void *ctx);
    void *ctx;
};

/* Variables are evaluated at most once in a session. Keeps `inputs`. */
struct dv_cel_session *dv_cel_session_new(const struct dv_cel_policy *policy,
                                          const struct dv_cel_inputs *inputs,
                                          struct dv_arena *arena);

enum dv_cel_outcome {
    DV_CEL_GAVE_BOOL,
    DV_CEL_GAVE_STRING,
    DV_CEL_GAVE_OTHER,
    DV_CEL_GAVE_ERROR,
    DV_CEL_STOPPED, /* by is_stopped, or by the authorizer */
};

struct dv_cel_gave {
    bool b;
    dv_str s;      /* the string, or the error; in the session's arena */
    uint64_t cost; /* with that of the variables that were evaluated for it */
};

enum dv_cel_outcome dv_cel_session_eval(struct dv_cel_session *session,
                                        const struct dv_cel_rule *rule, struct dv_cel_gave *gave);

#endif
