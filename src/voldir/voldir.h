/* voldir.h - the directories of pods on the disk: volumes, hosts file, termination messages, logs.
 *
 * Each operation is a job on a worker thread: a struct that the caller fills in, starts, and lends
 * until `done` has run, once, on the loop's thread. What a struct points to (plan, texts, arena) is
 * lent with it. Results are in the struct's arena. After dv_voldir_cancel `done` still runs: with
 * DV_CANCELLED when the job had not begun, else as it ended.
 *
 * Every operation may be repeated, and finishes what an earlier one began and a crash cut off. Of
 * one pod there may be several operations at a time, but for dv_voldir_set_up and
 * dv_voldir_tear_down: each of them is the pod's only one while it is under way.
 *
 *     <root>/pods/<uid>/                                      0750
 *         volumes/kubernetes.io~empty-dir/<name>/             what containers mount
 *         plugins/kubernetes.io~empty-dir/<name>/ready        this volume has been set up
 *         volume-subpaths/<volume>/<container>/<index>        bind mounts
 *         containers/<container>/<8 hex digits>               termination messages
 *         etc-hosts
 *     <logs>/<namespace>_<name>_<uid>/<container>/            0755
 *     <logs>/../containers/<name>_<namespace>_<container>-<id>.log   links to logs
 *
 * A container's processes may have made anything in its volumes: nothing here follows a link that
 * they made, and nothing of another file system is ever removed. */
#ifndef DV_VOLDIR_H
#define DV_VOLDIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "loop/loop.h"
#include "resource/values.h"
#include "workload/cgroup.h"

struct dv_arena;
struct dv_podlog_options;
struct dv_volume_plan;

struct dv_voldir_work {
    struct dv_work work;
    struct dv_err err; /* DV_OK: it went well */
};

/* ---- a pod's volumes ---- */

struct dv_voldir_problem {
    dv_str volume;
    dv_str text; /* for dv_volume_event */
};

/* Makes the pod's directories, its log directory and all volumes of the plan that have no problem.
 * Again for the same pod it writes what has changed in files: a reader sees all of the old ones or
 * all of the new, and what has not changed is not written. */
struct dv_voldir_set_up {
    /* Fails when one volume does, with its event's text; the others are set up. */
    void (*done)(struct dv_voldir_set_up *op, const struct dv_err *err);
    const struct dv_volume_plan *plan;
    const struct dv_cgroup_plan *cgroup; /* the pod's, made first; NULL: it is not made */
    bool is_refresh; /* only volumes of files are looked after: the pod has been running */
    struct dv_arena *arena;
    bool has_no_cgroup; /* result: it failed because the cgroup could not be made */
    /* Results: why volumes could not be set up, those of the plan included. */
    const struct dv_voldir_problem *problems;
    size_t n_problems;
    struct dv_voldir_work priv;
};
void dv_voldir_set_up(struct dv_voldir_set_up *op, struct dv_loop *loop);

/* Removes the pod's cgroups, unmounts what is mounted in its directory and removes that: what has a
 * cgroup has a directory. All containers of the pod have ended; what still runs in its cgroups is
 * killed. That there is none is fine; what cannot be unmounted is left whole, and fails. */
struct dv_voldir_tear_down {
    void (*done)(struct dv_voldir_tear_down *op, const struct dv_err *err);
    dv_str root_dir;
    dv_str uid;
    struct dv_strs cgroup_dirs; /* those of dv_cgroup_dirs_of_pod */
    struct dv_voldir_work priv;
};
void dv_voldir_tear_down(struct dv_voldir_tear_down *op, struct dv_loop *loop);

/* ---- the cgroups of all pods ---- */

/* Finds where cgroups are mounted and makes the groups above those of pods. */
struct dv_voldir_cgroups {
    void (*done)(struct dv_voldir_cgroups *op, const struct dv_err *err);
    dv_str dir;                 /* "/sys/fs/cgroup" */
    struct dv_cgroup_tree tree; /* `mounts` is a result, in the arena */
    struct dv_arena *arena;
    struct dv_voldir_work priv;
};
void dv_voldir_cgroups(struct dv_voldir_cgroups *op, struct dv_loop *loop);

/* ---- for one container, before it is made ---- */

/* Binds a part of a volume to the place where the runtime finds it, and makes it, as a directory
 * with the volume's mode, when the volume is writable and has no such part. A part that a link
 * leads out of the volume, also for a moment, is refused. */
struct dv_voldir_sub_path {
    void (*done)(struct dv_voldir_sub_path *op, const struct dv_err *err);
    const struct dv_volume_plan *plan;
    dv_str volume;
    dv_str sub_path; /* expanded */
    dv_str container;
    size_t index; /* of the mount in the container */
    struct dv_arena *arena;
    dv_str path; /* result: dv_volume_sub_path_place */
    struct dv_voldir_work priv;
};
void dv_voldir_sub_path(struct dv_voldir_sub_path *op, struct dv_loop *loop);

/* Makes what a container's start needs: its log directory, a new file for its termination message
 * (0666), the pod's hosts file. */
struct dv_voldir_container {
    void (*done)(struct dv_voldir_container *op, const struct dv_err *err);
    const struct dv_volume_plan *plan;
    dv_str container;
    dv_str hosts; /* the text of the hosts file; p is NULL: the file is left as it is */
    struct dv_arena *arena;
    dv_str termination_path; /* result: on the host */
    struct dv_voldir_work priv;
};
void dv_voldir_container(struct dv_voldir_container *op, struct dv_loop *loop);

/* ---- after a container has ended ---- */

/* Reads what a container left as its last words: at most the last 4096 bytes of the file, or the
 * last 80 lines of the log, at most 2048 bytes of them, when the file is empty and the container
 * failed. What is not UTF-8 becomes U+FFFD. It does not fail: what cannot be read is told in the
 * text, as the reference does. */
struct dv_voldir_message {
    void (*done)(struct dv_voldir_message *op, const struct dv_err *err);
    dv_str termination_path; /* the host's path; empty: there is none */
    dv_str log_path;         /* empty: the log is not looked at */
    struct dv_arena *arena;
    dv_str text; /* result */
    struct dv_voldir_work priv;
};
void dv_voldir_message(struct dv_voldir_message *op, struct dv_loop *loop);

/* ---- what is left over ---- */

enum dv_voldir_place {
    DV_VOLDIR_PODS, /* <root>/pods: the names are UIDs */
    DV_VOLDIR_LOGS, /* <logs>: the names are NAMESPACE_NAME_UID */
};

/* Lists the directories of pods. That there are none is fine. */
struct dv_voldir_list {
    void (*done)(struct dv_voldir_list *op, const struct dv_err *err);
    enum dv_voldir_place place;
    dv_str dir; /* <root> or <logs> */
    struct dv_arena *arena;
    const dv_str *names; /* results */
    size_t n_names;
    struct dv_voldir_work priv;
};
void dv_voldir_list(struct dv_voldir_list *op, struct dv_loop *loop);

/* Removes a pod's log directory, or with `file` one file in it. That there is none is fine. */
struct dv_voldir_remove_logs {
    void (*done)(struct dv_voldir_remove_logs *op, const struct dv_err *err);
    dv_str log_dir; /* of the pod */
    dv_str file;    /* "CONTAINER/0.log"; empty: all */
    struct dv_voldir_work priv;
};
void dv_voldir_remove_logs(struct dv_voldir_remove_logs *op, struct dv_loop *loop);

/* Sets those of the logs aside that have grown to max_bytes, and keeps n_files_max files of each in
 * all; those that were set aside before are packed. The runtime goes on writing to one that was set
 * aside until it is told (ReopenContainerLog); when that fails, dv_voldir_unrotate brings the log
 * back. */
struct dv_voldir_rotate {
    void (*done)(struct dv_voldir_rotate *op, const struct dv_err *err); /* err: the first one */
    const dv_str *log_paths;
    size_t n_logs;
    uint64_t max_bytes;
    size_t n_files_max; /* at least 2 */
    struct dv_arena *arena;
    const dv_str *aside_paths; /* results, one for each log; empty: it was not set aside */
    const bool *are_absent;    /* results: there is no such file; the runtime is to make it anew */
    struct dv_voldir_work priv;
};
void dv_voldir_rotate(struct dv_voldir_rotate *op, struct dv_loop *loop);

struct dv_voldir_unrotate {
    void (*done)(struct dv_voldir_unrotate *op, const struct dv_err *err);
    dv_str log_path;
    dv_str aside_path;
    struct dv_voldir_work priv;
};
void dv_voldir_unrotate(struct dv_voldir_unrotate *op, struct dv_loop *loop);

/* ---- reading a log ---- */

/* A log that is read a part at a time, and the file that takes its place when it is set aside. */
struct dv_voldir_log;

/* Keeps copies of all. `log_dir` is the directory of all logs: no link below it is followed, since
 * a container that can write there could make one to any file of the host. Opens nothing yet. */
struct dv_voldir_log *dv_voldir_log_new(dv_str log_dir, dv_str path,
                                        const struct dv_podlog_options *options);
void dv_voldir_log_free(struct dv_voldir_log *log); /* NULL is fine; no job reads it */
/* The next part is the beginning of the file that is at the path by then. */
void dv_voldir_log_reopen(struct dv_voldir_log *log);

/* Reads the next part, at most some 100 KB of text to be shown. */
struct dv_voldir_read_log {
    void (*done)(struct dv_voldir_read_log *op, const struct dv_err *err);
    struct dv_voldir_log *log;
    dv_str text;      /* result: what is to be shown, borrowed until the next part is read */
    bool is_at_end;   /* result: there is no more in the file now */
    bool is_replaced; /* result, at the end: the path is another file, or the file was cut off */
    bool is_done;     /* result: nothing more is to be shown, whatever is in the file */
    struct dv_voldir_work priv;
};
void dv_voldir_read_log(struct dv_voldir_read_log *op, struct dv_loop *loop);

/* ---- links to logs ---- */

/* A link by which collectors find the log of a container. */
struct dv_voldir_link {
    dv_str path;   /* "/var/log/containers/POD_NAMESPACE_CONTAINER-ID.log" */
    dv_str target; /* the log; empty: the link is removed */
};

/* Makes links and their directory, and removes others. What is there and is no link stays. */
struct dv_voldir_links {
    void (*done)(struct dv_voldir_links *op, const struct dv_err *err); /* err: the first one */
    const struct dv_voldir_link *links;
    size_t n_links;
    struct dv_voldir_work priv;
};
void dv_voldir_links(struct dv_voldir_links *op, struct dv_loop *loop);

/* Removes links to logs below `log_dir` that are not there any more, but for those of containers
 * with these ids: between the log that was set aside and the new one there is none. */
struct dv_voldir_clean_links {
    void (*done)(struct dv_voldir_clean_links *op, const struct dv_err *err);
    dv_str dir;
    dv_str log_dir;
    struct dv_strs ids;
    struct dv_voldir_work priv;
};
void dv_voldir_clean_links(struct dv_voldir_clean_links *op, struct dv_loop *loop);

/* Cancels an operation by its `priv`. */
void dv_voldir_cancel(struct dv_voldir_work *work);

#endif
