/* kube_hook_call.h - one call of a webhook: where it is, what it is sent, what it answers. */
#ifndef DV_SERVE_KUBE_HOOK_CALL_H
#define DV_SERVE_KUBE_HOOK_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "base/num.h"
#include "base/str.h"
#include "loop/loop.h"
#include "rest/rest.h"
#include "webhook/webhook.h"
/* IWYU pragma: no_include "types.h" */

struct dv_api_version;
struct dv_api_webhook_client_config;
struct dv_arena;
struct dv_hook_client;
struct dv_kube;
struct dv_vap_write;

/* ---- clients (kube_hook_client.c) ---- */

/* Clients of webhooks, which keep their connections. */
struct dv_hook_clients {
    struct dv_list all; /* struct dv_hook_client, the one used last comes last */
    size_t n;
};

/* A place that a webhook is at: the URL that its client has, and the rest. */
struct dv_hook_place {
    dv_str base;       /* "https://webhook.ns.svc:443" */
    dv_str target;     /* "/validate" */
    dv_str connect_to; /* "10.0.0.1:8443"; empty: to the base */
};

void dv_hook_clients_init(struct dv_hook_clients *clients);
/* Closes those that are not in use. */
void dv_hook_clients_close_idle(struct dv_hook_clients *clients);
/* Finds where the webhook is; of a service it is one of its ready endpoints. Texts are in `arena`.
 * False: it is nowhere. */
DV_CHECKED bool dv_hook_find(struct dv_kube *kube,
                             const struct dv_api_webhook_client_config *config,
                             struct dv_arena *arena, struct dv_hook_place *place,
                             struct dv_err *err);
/* Finds or opens the client for the place, which trusts the CAs of `ca`; it is in use until it is
 * given back. NULL: there can be none. */
struct dv_hook_client *dv_hook_client_take(struct dv_kube *kube, dv_str base, dv_str ca,
                                           struct dv_err *err);
void dv_hook_client_give_back(struct dv_hook_client *client);
struct dv_rest_client *dv_hook_client_rest(const struct dv_hook_client *client);

/* ---- calls (kube_hook_call.c) ---- */

/* One call, embedded in what waits for it; zeroed, filled in, and lent until `done` has run. */
struct dv_hook_call {
    struct dv_kube *kube;
    struct dv_webhook *webhook; /* a reference of who waits */
    const struct dv_vap_write *write;
    const struct dv_api_version *version; /* in which the objects are shown */
    uint64_t deadline_ms;                 /* of the whole write */
    /* Its end, in a later turn. code DV_OK: `answer` is set. Otherwise `err` says why the webhook
     * could not be asked, as the reference tells it. */
    void (*done)(struct dv_hook_call *call);
    void *ctx;
    struct dv_err err;
    struct dv_webhook_answer answer; /* in `kept` */
    struct dv_arena *kept;           /* NULL: the call's own, until dv_hook_call_fini */
    struct dv_arena *arena;          /* the call's own */

    bool is_cancelled;
    char uid_text[DV_UUID_BYTES];
    dv_str uid;
    dv_str text; /* the answer as it came */
    struct dv_buf body;
    struct dv_hook_client *client; /* NULL: none */
    struct dv_rest_fetch fetch;
    struct dv_rest_field field;
    bool is_fetching;
    struct dv_work work;
    struct dv_task task;
};

void dv_hook_call_start(struct dv_hook_call *call);
/* Gives up: `done` still runs. Does nothing once it has. */
void dv_hook_call_cancel(struct dv_hook_call *call);
void dv_hook_call_fini(struct dv_hook_call *call); /* zeroed is fine */

#endif
