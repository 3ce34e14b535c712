/* cli_api.h - the API server, asked one thing after the other. */
#ifndef DV_CLI_API_H
#define DV_CLI_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "cli/cli.h"
#include "resource/resource.h"

struct dv_arena;
struct dv_buf;
struct dv_err;
struct dv_json;
struct dv_loop;
struct dv_rest_client;

struct dv_cli_api {
    struct dv_cli *cli;
    struct dv_loop *loop;
    struct dv_rest_client *client;
    dv_str server;    /* its URL */
    dv_str source;    /* the kubeconfig */
    dv_str ca;        /* who vouches for it, as PEM; empty: whom the system trusts */
    dv_str namespace; /* of -n, of the context, or default */
    /* The first version of each kind that the server may have, as far as we know. */
    size_t versions[DV_N_KINDS];
    enum dv_exit exit; /* why there was no answer */
};

/* The kubeconfig of --kubeconfig, of the local daemon, or of the environment; for kubectl's plugin
 * that of kubectl.
 * DV_NOT_FOUND: there is none, and what to do. */
DV_CHECKED bool dv_cli_api_find(const struct dv_cli *cli, const char *environment, dv_str *path,
                                struct dv_err *err);
/* Prepares to talk to the API server; nothing is connected yet. Anything but DV_EXIT_OK: the error
 * is printed. */
enum dv_exit dv_cli_api_open(struct dv_cli *cli, struct dv_cli_api *api);
void dv_cli_api_close(struct dv_cli_api *api);

struct dv_cli_param {
    const char *name;
    dv_str value; /* empty: left out */
};

struct dv_cli_ask {
    dv_str method;
    dv_str path; /* empty: that of the kind, namespace and name that follow */
    const struct dv_kind *kind;
    const struct dv_api_version *version; /* NULL: the newest that the server has */
    dv_str namespace;                     /* empty: all namespaces */
    dv_str name;                          /* empty: the collection */
    const char *subresource;              /* "log"; NULL: none */
    const struct dv_cli_param *params;
    size_t n_params;
    dv_str content_type;
    dv_str body;
};

struct dv_cli_answer {
    unsigned status; /* of HTTP */
    const struct dv_api_version *version;
    struct dv_json *doc;                 /* with success */
    const struct dv_api_status *failure; /* NULL: success */
};

/* Asks and waits; the answer is in `arena`. Warnings of the server are printed. False: there was no
 * answer; that is printed, and api->exit says how to end. */
DV_CHECKED bool dv_cli_api_ask(struct dv_cli_api *api, const struct dv_cli_ask *ask,
                               struct dv_arena *arena, struct dv_cli_answer *answer);
/* Like dv_cli_api_ask, for an answer that goes on: `line` gets each line of it, and returns false
 * to end it. When the server ends it, that is a success; answer->doc stays NULL. */
DV_CHECKED bool dv_cli_api_follow(struct dv_cli_api *api, const struct dv_cli_ask *ask,
                                  bool (*line)(void *ctx, dv_str text), void *ctx,
                                  struct dv_arena *arena, struct dv_cli_answer *answer);

/* An answer that is text, and is read as it comes. */
struct dv_cli_text {
    struct dv_cli_ask ask;
    bool is_endless; /* there may be nothing new for weeks; otherwise --timeout counts */
    /* Gets the next bytes; returns false to end all answers. */
    bool (*part)(struct dv_cli_text *text, dv_str bytes);
    const struct dv_api_status *failure; /* result: why there was no answer; NULL: there was */
};
/* Asks for all of them at the same time, and waits until the last one has ended. False as above,
 * when any was broken off. */
DV_CHECKED bool dv_cli_api_read_texts(struct dv_cli_api *api, struct dv_cli_text *const *texts,
                                      size_t n_texts, struct dv_arena *arena);
void dv_cli_api_sleep(struct dv_cli_api *api, uint64_t ms);

struct dv_cli_list {
    const struct dv_kind *kind;
    dv_str namespace;
    dv_str labels;
    dv_str fields;
    /* set by the call */
    struct dv_json **items; /* with apiVersion and kind */
    size_t n_items;
    dv_str resource_version;
    const struct dv_api_version *version;
    const struct dv_api_status *failure; /* NULL: success */
};
/* Lists all objects of a kind, in pages. False as above. */
DV_CHECKED bool dv_cli_api_list(struct dv_cli_api *api, struct dv_cli_list *list,
                                struct dv_arena *arena);

/* "davit: WHAT: message (reason)" on standard error, WHAT may be empty. */
enum dv_exit dv_cli_api_complain(const struct dv_cli_api *api, const struct dv_api_status *failure,
                                 dv_str what);

/* An object of the server's answer, in `arena`. Its kind must be `kind`. */
DV_CHECKED bool dv_cli_object_decode(const struct dv_kind *kind, const struct dv_json *doc,
                                     struct dv_arena *arena, struct dv_object *object,
                                     struct dv_err *err);
/* The text of a member of a member: dv_cli_text(doc, "metadata", "name"); empty when absent. An
 * empty first name is left out. */
dv_str dv_cli_text(const struct dv_json *doc, const char *parent, const char *name);
struct dv_time dv_cli_now(void);

#endif
