/* recorder.h - events: what happened to an object, for people to read. Notes are never waited for:
 * the same thing again is counted in the event that is there. A burst of many objects is written as
 * fast as the API takes it; too many of one object, or tens of thousands that wait, are dropped and
 * counted. */
#ifndef DV_CLUSTER_RECORDER_H
#define DV_CLUSTER_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "loop/loop.h"

struct dv_cluster;
struct dv_object;
struct dv_recorder;

/* The object that a note is about. */
struct dv_note_subject {
    dv_str kind;        /* "Pod" */
    dv_str api_version; /* "v1", "resource.k8s.io/v1" */
    dv_str namespace;   /* empty: it is in none */
    dv_str name;
    dv_str uid;
    dv_str field_path; /* "spec.containers{c}": the part of it that is meant; empty: all of it */
};
struct dv_note_subject dv_note_subject_of(const struct dv_object *object);

/* `component` is who speaks ("davit-scheduler"), `host` the node; both are copied. */
struct dv_recorder *dv_recorder_open(struct dv_cluster *cluster, dv_str component, dv_str host);
/* What is not written yet is given up. `closed` may be NULL. */
void dv_recorder_close(struct dv_recorder *recorder, dv_closed_fn *closed, void *ctx);

/* Copies what it is given; a message is cut at 1,024 bytes, and what is no UTF-8 replaced. */
void dv_recorder_note(struct dv_recorder *recorder, const struct dv_note_subject *subject,
                      bool is_warning, dv_str reason, dv_str message);
/* Notes that were dropped, because there were too many, or that could not be written. */
uint64_t dv_recorder_n_dropped(const struct dv_recorder *recorder);

#endif
