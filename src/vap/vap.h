/* vap.h - validating admission policies: which of them a write concerns, and what they say of it,
 * as the reference decides it. Pure.
 *
 * An index holds the policies and bindings that there are, compiled, kept current change by change.
 * A write is judged in two steps: dv_vap_judge finds on the loop what is to be evaluated, mostly
 * nothing; dv_vap_run evaluates, on the loop or, when that takes long, on a worker. Questions to
 * the authorizer are answered on the loop: a worker that has one ends with it, and begins anew when
 * it has been answered. */
#ifndef DV_VAP_H
#define DV_VAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct dv_api_label_selector;
struct dv_api_user_info;
struct dv_api_version;
struct dv_arena;
struct dv_cel_check;
struct dv_cel_decision;
struct dv_json;
struct dv_kind;
struct dv_object;
struct dv_vap;
struct dv_vap_judgement;

struct dv_vap *dv_vap_new(void);
void dv_vap_free(struct dv_vap *vap); /* NULL is fine; no judgement may be under way */
/* A ValidatingAdmissionPolicy or a binding came (`old` is NULL), changed, or went (`now` is
 * NULL). */
void dv_vap_changed(struct dv_vap *vap, const struct dv_object *old, struct dv_object *now);
/* Whether a policy may be about objects of the kind: false at the cost of a look into a table. */
bool dv_vap_is_about(const struct dv_vap *vap, const struct dv_kind *kind);

enum dv_vap_operation {
    DV_VAP_CREATE,
    DV_VAP_UPDATE,
    DV_VAP_DELETE,
    DV_VAP_CONNECT,
};

/* A write that is about to happen. Subresources may have objects of another kind than their
 * resource: a Binding, for pods/binding. */
struct dv_vap_write {
    enum dv_vap_operation operation;
    const struct dv_kind *kind;
    const struct dv_api_version *version; /* of the request */
    dv_str subresource;
    dv_str namespace;   /* for a Namespace, its own name */
    dv_str name;        /* empty: it is generated */
    const void *object; /* NULL: it goes */
    const void *old;    /* NULL: there is none */
    /* The object as a document, when it is of another kind, which is named too: `object` is NULL
     * then. */
    const struct dv_json *other;
    const struct dv_api_version *other_version;
    dv_str other_kind;
    const struct dv_api_user_info *user;
    const struct dv_json *options; /* the request's, as a document; may be NULL */
    bool is_dry_run;
};

/* What is asked of the one who serves the request, on the loop. */
struct dv_vap_world {
    /* The object, with its value; NULL: there is none. */
    const struct dv_object *(*get)(void *ctx, const struct dv_kind *kind, dv_str namespace,
                                   dv_str name);
    /* Calls `each` for the objects of the kind, in the namespace if it is not empty, that the
     * selector selects. */
    void (*list)(void *ctx, const struct dv_kind *kind, dv_str namespace,
                 const struct dv_api_label_selector *selector,
                 void (*each)(void *each_ctx, const struct dv_object *object), void *each_ctx);
    /* What the authorizer says, with texts in `arena`. */
    void (*decide)(void *ctx, const struct dv_cel_check *check, struct dv_arena *arena,
                   struct dv_cel_decision *decision);
    void *ctx;
};

/* Finds the policies that the write concerns. NULL: there are none, and it may happen. Keeps
 * `write` with all that it refers to, and a copy of `world`; to be freed on the loop. */
struct dv_vap_judgement *dv_vap_judge(struct dv_vap *vap, const struct dv_vap_write *write,
                                      const struct dv_vap_world *world);
void dv_vap_judgement_free(struct dv_vap_judgement *judgement); /* NULL is fine */

enum dv_vap_step {
    DV_VAP_DONE,
    DV_VAP_NEEDS_WORKER,   /* it takes longer than the loop has */
    DV_VAP_NEEDS_DECISION, /* the authorizer is to be asked, by dv_vap_decide */
};

enum dv_vap_place {
    DV_VAP_ON_LOOP,   /* the authorizer is asked at once, and what takes long is put off */
    DV_VAP_ON_WORKER, /* what takes long is done, within its cost */
};

/* Evaluates from the beginning. */
enum dv_vap_step dv_vap_run(struct dv_vap_judgement *judgement, enum dv_vap_place place);
/* Answers, on the loop, the question that a worker has ended with. */
void dv_vap_decide(struct dv_vap_judgement *judgement);

struct dv_vap_verdict {
    bool is_refused;
    int code;       /* 422, 403, 413 */
    dv_str reason;  /* "Invalid" */
    dv_str message; /* "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: ..." */
    const dv_str *warnings;
    size_t n_warnings;
};

/* What came out, once it is done; borrowed until the judgement is freed. */
const struct dv_vap_verdict *dv_vap_verdict(const struct dv_vap_judgement *judgement);

#endif
