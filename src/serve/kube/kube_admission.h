/* kube_admission.h - what policies and webhooks are shown of a write, and in which order they are
 * asked. */
#ifndef DV_SERVE_KUBE_ADMISSION_H
#define DV_SERVE_KUBE_ADMISSION_H

#include "base/str.h"
#include "cluster/cluster.h"
#include "vap/vap.h"
#include "webhook/webhook.h"

struct dv_api_status;
struct dv_kube_call;

/* ---- kube_admission.c ---- */

/* What expressions may ask for, on behalf of the call. */
struct dv_vap_world dv_kube_world(struct dv_kube_call *call);
/* The write that is judged, with what it refers to in the judging's arena. */
struct dv_vap_write dv_kube_write_of(struct dv_judging *judging);
/* The name that a refusal of the write tells. */
dv_str dv_kube_written_name(const struct dv_vap_write *write);

/* ---- kube_policies.c ---- */

/* What is found out about a write, by policies or webhooks; in the arena of what waits for it. */
struct dv_kube_verdict {
    /* Set by who asks. The call's arena, or that of the judging, lives until `told` has run. */
    struct dv_kube_call *call;
    struct dv_judging *judging; /* NULL: it is a connection */
    struct dv_arena *arena;
    struct dv_vap_write write;
    void (*told)(struct dv_kube_verdict *verdict); /* runs in a later turn, if there is no answer
                                                      at once */
    const struct dv_api_status *failure;           /* the answer; NULL: it may happen */
};

/* Asks the policies. */
enum dv_judged dv_kube_ask_policies(struct dv_kube_verdict *verdict);

/* ---- kube_webhooks.c ---- */

/* Asks the webhooks of the phase. Those that mutate change verdict->write.object, and set `changed`
 * of the judging to it. */
enum dv_judged dv_kube_ask_webhooks(struct dv_kube_verdict *verdict, enum dv_webhook_phase phase);

#endif
