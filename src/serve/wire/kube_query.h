/* kube_query.h - the options of requests: what the query says, and what is wrong with it. Pure.
 *
 * Failures are Status objects in the arena, with the reference's texts. */
#ifndef DV_SERVE_KUBE_QUERY_H
#define DV_SERVE_KUBE_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "resource/resource.h"

struct dv_api_delete_options;
struct dv_api_status;
struct dv_arena;

/* The parameters of a query, as texts. One that is not there has p == NULL. */
struct dv_query {
    dv_str label_selector;
    dv_str field_selector;
    dv_str resource_version;
    dv_str match; /* resourceVersionMatch */
    dv_str limit;
    dv_str continue_token;
    dv_str request_timeout; /* "timeout", a duration; timeoutSeconds is of lists and watches */
    dv_str timeout;         /* timeoutSeconds */
    dv_str watch;
    dv_str allow_bookmarks;
    dv_str send_initial;
    dv_str field_manager;
    dv_str field_validation;
    dv_str force;
    dv_str grace_period;
    dv_str propagation;
    dv_str orphan;
    dv_str pretty;
    dv_str include_object;
    dv_str export;
    const dv_str *dry_run;
    size_t n_dry_run;
};

void dv_query_parse(dv_str query, struct dv_arena *arena, struct dv_query *parsed);
/* Whether a flag is set as the reference reads it: it is there, and not "false" or "0". */
bool dv_query_is_true(dv_str value);
/* Parses a number. False: *failure is the reference's 400. */
DV_CHECKED bool dv_query_parse_i64(dv_str text, struct dv_arena *arena, int64_t *value,
                                   struct dv_api_status **failure);

/* Checks the time that a request may take at most. */
DV_CHECKED bool dv_query_check_timeout(const struct dv_query *query, struct dv_arena *arena,
                                       struct dv_api_status **failure);

/* ---- options ---- */

struct dv_list_options {
    bool is_watch;
    enum dv_version_match match;
    uint64_t limit;
    uint64_t timeout_s; /* 0: none was given */
    bool allows_bookmarks;
    bool has_send_initial;
    bool sends_initial;
};

DV_CHECKED bool dv_query_list_options(const struct dv_query *query, bool is_watch,
                                      struct dv_arena *arena, struct dv_list_options *options,
                                      struct dv_api_status **failure);

struct dv_write_options {
    bool is_dry_run;
    bool is_forced;
    enum dv_field_validation validation;
    dv_str field_manager;
};

/* Reads the options of a write. `kind` is "CreateOptions", "UpdateOptions" or "PatchOptions". The
 * manager is the query's, or the first part of the user agent. */
DV_CHECKED bool dv_query_write_options(const struct dv_query *query, const char *kind,
                                       bool is_apply, dv_str user_agent, struct dv_arena *arena,
                                       struct dv_write_options *options,
                                       struct dv_api_status **failure);

/* Reads the options of a DELETE without a body. */
DV_CHECKED bool dv_query_delete_options(const struct dv_query *query, struct dv_arena *arena,
                                        struct dv_api_delete_options *options,
                                        struct dv_api_status **failure);

#endif
