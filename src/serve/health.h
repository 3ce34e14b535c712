/* health.h - what is wrong with this daemon now, and what happened to it that somebody has to look
 * at. Both are logged when they come; /readyz, `davit status` and metrics tell them afterwards. */
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

/* What cannot do its work, each with the trouble that it has. */
enum dv_health_part {
    DV_HEALTH_STATE,      /* the database cannot be written */
    DV_HEALTH_KUBECONFIG, /* nor admin.kubeconfig */
    DV_N_HEALTH_PARTS,
};

/* err: NULL when it works (again). Logs the change; the same again is not logged. */
void dv_health_set(struct dv_health *health, enum dv_health_part part, const struct dv_err *err);
/* All troubles there are, in one text; NULL: none. Until the next change. */
const struct dv_err *dv_health_trouble(const struct dv_health *health);

/* What has happened. It is told as long as the daemon runs. */
enum dv_health_event {
    DV_HEALTH_STATE_DAMAGED, /* a file was damaged, and set aside */
    DV_HEALTH_WRITES_LOST,   /* that had been acknowledged */
    DV_HEALTH_ROW_SET_ASIDE, /* a row could not be used */
    DV_HEALTH_MODE_FIXED,    /* others could read or write a file that is root's alone */
    DV_N_HEALTH_EVENTS,
};

/* Logs it as an error, and remembers the text. */
void dv_health_note(struct dv_health *health, enum dv_health_event event, const char *fmt, ...)
    DV_PRINTF(3, 4);
/* The first texts; all are counted. Until the next note. */
size_t dv_health_notes(const struct dv_health *health, const dv_str **notes);

#endif
