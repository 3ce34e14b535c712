/* pod_logs.h - the logs of this node that are being read, which the files of logs/ share. */
#ifndef DV_SERVE_POD_LOGS_H
#define DV_SERVE_POD_LOGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "serve/logs/log_dirs.h"
#include "serve/logs/pod_log.h"

struct dv_node;

struct dv_pod_logs {
    struct dv_loop *loop;
    const struct dv_node *node;
    struct dv_list all; /* of dv_pod_log */
    size_t n;
    struct dv_log_dirs dirs;
    bool is_stopped;
};

/* How many may be read at a time: each has a descriptor, and holds some 300 KB when its client does
 * not read. */
#define DV_POD_LOGS_MAX 256u

/* Whether the container may still write: it runs, or nobody knows. */
bool dv_pod_log_is_written(const struct dv_pod_log *log);

#endif
