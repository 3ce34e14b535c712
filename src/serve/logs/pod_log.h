/* pod_log.h - the logs of containers over HTTP: what is asked for, which container's log that is,
 * and the answer, for as long as it takes.
 *
 *     dv_pod_log_options_parse   what the query says, or why it is refused
 *     dv_pod_log_find            which file that is, or why there is none
 *     dv_pod_log_start           the answer: 200, what is in the file, and what is added to it
 *
 * Files are read by jobs, a part at a time; the next part is read when the client has taken most of
 * the last ones. So a reader holds a few hundred kilobytes, whatever the file is and whether
 * the client reads or not. */
#ifndef DV_SERVE_POD_LOG_H
#define DV_SERVE_POD_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/calendar.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/str.h"
#include "loop/loop.h"
#include "podlog/podlog.h"
#include "rest/rest.h"
#include "voldir/voldir.h"

struct dv_api_pod_spec;
struct dv_api_pod_status;
struct dv_api_status;
struct dv_arena;
struct dv_log_dir;
struct dv_object;
struct dv_pod_logs;

/* ---- what is asked for ---- */

/* The API's PodLogOptions. */
struct dv_pod_log_options {
    dv_str container; /* empty: none is named */
    bool is_previous; /* the log of the instance before the present one */
    struct dv_podlog_options show;
};

/* Reads the options of a request for the log of pod `name` from the query; `now` is the time that
 * sinceSeconds counts from. False: *failure is a Status in the arena, 400 or 422 with the
 * reference's text. */
DV_CHECKED bool dv_pod_log_options_parse(dv_str query, dv_str name, struct dv_rfc3339 now,
                                         struct dv_arena *arena, struct dv_pod_log_options *options,
                                         struct dv_api_status **failure);

/* ---- which container's ---- */

/* Chooses the container of a request that may name none, for logs and for streams alike. False:
 * *text, in the arena, is the reference's reason for a 400. */
DV_CHECKED bool dv_pod_choose_container(const struct dv_api_pod_spec *spec, dv_str pod_name,
                                        dv_str wanted, struct dv_arena *arena, dv_str *container,
                                        dv_str *text);

/* Finds which instance of a container has the log: *id is as in the status ("containerd://3f2c").
 * False: *text, in the arena, is the reference's reason for a 400. */
DV_CHECKED bool dv_pod_log_instance(const struct dv_api_pod_status *status, dv_str pod_name,
                                    dv_str container, bool is_previous, struct dv_arena *arena,
                                    dv_str *id, dv_str *text);

/* ---- those of this node (dv_pod_logs_new in serve.h) ---- */

/* A log file, and what writes it. Texts are in the arena of dv_pod_log_find. */
struct dv_pod_log_target {
    dv_str uid; /* the pod's, as the runtime knows it */
    dv_str id;  /* the container's, as the runtime knows it */
    dv_str path;
};

/* Why there is no log to be read. */
struct dv_pod_log_refusal {
    /* 400: there is none, for a reason of the pod. 429: too many are being read. 503: this node
     * cannot tell now. */
    unsigned code;
    dv_str text; /* in the arena */
};

/* Finds the log of a container of a pod of this node, which has a container of that name. */
DV_CHECKED bool dv_pod_log_find(const struct dv_pod_logs *logs, const struct dv_object *pod,
                                dv_str container, bool is_previous, struct dv_arena *arena,
                                struct dv_pod_log_target *target,
                                struct dv_pod_log_refusal *refusal);

/* ---- an answer ---- */

/* An answer that is under way. It is embedded in what waits for it, zeroed, then `ended` is set; it
 * is lent until that has run. */
struct dv_pod_log {
    /* The answer has ended, whole or not; runs exactly once. The call is gone. */
    void (*ended)(struct dv_pod_log *log);
    /* private */
    struct dv_pod_logs *logs;
    struct dv_link link; /* among all that are read */
    struct dv_rest_stream stream;
    struct dv_voldir_read_log read;
    struct dv_podlog_follow follow;
    struct dv_log_dir *dir;   /* it is followed: the file's directory; NULL: it is not */
    struct dv_link wait_link; /* among those that wait for the directory to change */
    struct dv_timer timer;
    struct dv_arena *arena;
    dv_str uid;
    dv_str id;
    bool is_reading; /* a job is */
    bool is_held;    /* the client has to read first */
    uint64_t watch;  /* the directory's watch when that job began; 0: it was not watched */
    bool is_over;    /* nothing more is sent */
    bool has_ended;  /* the stream has */
};

/* Begins the answer with 200 and the fields that were added to the call. `target` and `options` are
 * copied. A file that cannot be opened is told in the text, as the reference does. */
void dv_pod_log_start(struct dv_pod_logs *logs, struct dv_pod_log *log,
                      const struct dv_pod_log_target *target,
                      const struct dv_pod_log_options *options, struct dv_rest_call *call);
/* Breaks the answer off; `ended` still runs. Does nothing once it has. */
void dv_pod_log_cancel(struct dv_pod_log *log);

#endif
