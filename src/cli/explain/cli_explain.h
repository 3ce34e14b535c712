/* cli_explain.h - why claims are not allocated, for people and for programs. */
#ifndef DV_CLI_EXPLAIN_H
#define DV_CLI_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"

struct dv_arena;
struct dv_buf;
struct dv_cli_nodes;
struct dv_cli_world;
struct dv_inventory;
struct dv_json;

struct dv_cli_claims {
    const struct dv_api_resource_claim **v;
    size_t n;
    size_t size;
};

/* The claims that are to be allocated together. */
struct dv_cli_explain_subject {
    dv_str what;                    /* "claim default/a" */
    struct dv_cli_claims pending;   /* without an allocation */
    struct dv_cli_claims allocated; /* with one */
    dv_str node;                    /* where a pod is bound to; empty: anywhere */
    struct {
        dv_str *v;
        size_t n;
        size_t size;
    } obstacles;      /* what is in the way on every node: a claim that is not there */
    bool is_hopeless; /* no node need be asked: a class is not there */
};

/* Finds one claim, or those of a pod. A claim that is not made yet is as its template says.
 * DV_NOT_FOUND: there is no such object; the message names the namespaces that have one of that
 * name. */
DV_CHECKED bool dv_cli_explain_subject_find(const struct dv_cli_world *world, enum dv_kind_id kind,
                                            dv_str namespace, dv_str name,
                                            struct dv_cli_explain_subject *subject,
                                            struct dv_err *err);

struct dv_cli_explain {
    const struct dv_cli_explain_subject *subject;
    struct dv_inventory *inventory;
    const struct dv_cli_nodes *nodes;
    struct dv_arena *arena;
    bool is_all; /* all nodes, and all devices */
    bool has_headers;
};

/* Both return whether all is allocated, or can be. */
bool dv_cli_explain_print(const struct dv_cli_explain *explain, struct dv_buf *buf);
/* Makes the explanation as data, with all nodes and devices. */
bool dv_cli_explain_data(const struct dv_cli_explain *explain, struct dv_json **doc);

/* "1,000", in the arena. */
dv_str dv_cli_thousands(size_t n, struct dv_arena *arena);

/* One line about a pod that waits. */
struct dv_cli_line {
    size_t n_nodes;
    size_t n_fitting;
    dv_str nearest; /* the node that fits, or that lacks least; empty: none was asked */
    dv_str why;     /* what is in the way there, or everywhere; empty: nothing */
    bool is_ok;     /* all is allocated, or can be */
};
void dv_cli_explain_line(const struct dv_cli_explain *explain, struct dv_cli_line *line);

#endif
