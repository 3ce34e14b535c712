/* health.h - keeps what is wrong with this daemon now, and what happened to it that somebody has to
 * look at. Both are logged when they come; /readyz, `davit status` and metrics tell them
 * afterwards. */
#ifndef DV_SERVE_HEALTH_H
#define DV_SERVE_HEALTH_H

#include <stddef.h>

#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"

struct dv_health;
struct dv_metrics;

/* Adds its families to `metrics`, which live as long as it does. */
struct dv_health *dv_health_new(struct dv_metrics *metrics);
void dv_health_free(struct dv_health *health); /* NULL is fine */

/* The parts that may be unable to do their work; each has one trouble at a time. */
enum dv_health_part {
    DV_HEALTH_STATE,      /* the database cannot be written */
    DV_HEALTH_KUBECONFIG, /* admin.kubeconfig cannot be written */
    /* These sockets were removed, and cannot be made anew. */
    DV_HEALTH_REGISTRATION, /* device-plugins/kubelet.sock */
    DV_HEALTH_PODRES,       /* pod-resources/kubelet.sock */
    DV_HEALTH_DAVIT,        /* davit.sock */
    DV_N_HEALTH_PARTS,
};

/* Sets the part's trouble; err is NULL when it works (again). Changes are logged, repetitions are
 * not. */
void dv_health_set(struct dv_health *health, enum dv_health_part part, const struct dv_err *err);
/* Returns all present troubles in one text, until the next change; NULL: there are none. */
const struct dv_err *dv_health_trouble(const struct dv_health *health);

/* Events that somebody has to look at; they are reported as long as the daemon runs. */
enum dv_health_event {
    DV_HEALTH_STATE_DAMAGED, /* a file was damaged, and set aside */
    DV_HEALTH_WRITES_LOST,   /* writes that had been acknowledged are lost */
    DV_HEALTH_ROW_SET_ASIDE, /* a row could not be used */
    DV_HEALTH_MODE_FIXED,    /* others could read or write a file that is root's alone */
    DV_N_HEALTH_EVENTS,
};

/* Logs the event as an error, and remembers the text. */
void dv_health_note(struct dv_health *health, enum dv_health_event event, const char *fmt, ...)
    DV_PRINTF(3, 4);
/* Returns the first texts, until the next note; all are counted. */
size_t dv_health_notes(const struct dv_health *health, const dv_str **notes);

/* Sets what is wrong at present with files of this node that others write, in the place of what was
 * set before; the texts are copied. It is told with the notes. */
void dv_health_set_faults(struct dv_health *health, const dv_str *texts, size_t n_texts);
size_t dv_health_faults(const struct dv_health *health, const dv_str **texts);

#endif
