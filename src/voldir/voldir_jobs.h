/* voldir_jobs.h - what each operation does on its worker. They block. */
#ifndef DV_VOLDIR_JOBS_H
#define DV_VOLDIR_JOBS_H

#include <stdbool.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_arena;
struct dv_cgroup_plan;
struct dv_err;
struct dv_strs;
struct dv_voldir_cgroups;
struct dv_voldir_clean_links;
struct dv_voldir_container;
struct dv_voldir_links;
struct dv_voldir_list;
struct dv_voldir_message;
struct dv_voldir_read_log;
struct dv_voldir_remove_logs;
struct dv_voldir_rotate;
struct dv_voldir_set_up;
struct dv_voldir_sub_path;
struct dv_voldir_tear_down;
struct dv_voldir_unrotate;
struct dv_volume;
struct dv_volume_plan;

DV_CHECKED bool dv_voldir_run_set_up(struct dv_voldir_set_up *op, struct dv_err *err);
DV_CHECKED bool dv_voldir_run_tear_down(struct dv_voldir_tear_down *op, struct dv_err *err);
DV_CHECKED bool dv_voldir_run_cgroups(struct dv_voldir_cgroups *op, struct dv_err *err);
DV_CHECKED bool dv_voldir_run_sub_path(struct dv_voldir_sub_path *op, struct dv_err *err);
DV_CHECKED bool dv_voldir_run_container(struct dv_voldir_container *op, struct dv_err *err);
DV_CHECKED bool dv_voldir_run_message(struct dv_voldir_message *op, struct dv_err *err);
DV_CHECKED bool dv_voldir_run_list(struct dv_voldir_list *op, struct dv_err *err);
DV_CHECKED bool dv_voldir_run_remove_logs(struct dv_voldir_remove_logs *op, struct dv_err *err);
DV_CHECKED bool dv_voldir_run_rotate(struct dv_voldir_rotate *op, struct dv_err *err);
DV_CHECKED bool dv_voldir_run_unrotate(struct dv_voldir_unrotate *op, struct dv_err *err);
DV_CHECKED bool dv_voldir_run_read_log(struct dv_voldir_read_log *op, struct dv_err *err);
DV_CHECKED bool dv_voldir_run_links(struct dv_voldir_links *op, struct dv_err *err);
DV_CHECKED bool dv_voldir_run_clean_links(struct dv_voldir_clean_links *op, struct dv_err *err);

/* Does the steps of a plan. */
DV_CHECKED bool dv_voldir_make_cgroups(const struct dv_cgroup_plan *plan, struct dv_err *err);
/* Removes groups with all that is in them: what runs there is killed. What is not there is fine. */
DV_CHECKED bool dv_voldir_remove_cgroups(const struct dv_strs *dirs, struct dv_err *err);

/* Checks that there is at a host path what its type says, and makes it where that says so. */
DV_CHECKED bool dv_voldir_check_host_path(const struct dv_volume *volume, struct dv_arena *arena,
                                          struct dv_err *err);

/* Opens the pod's directory, made where it is not there. -1: err is set. */
int dv_voldir_open_pod(const struct dv_volume_plan *plan, struct dv_arena *arena,
                       struct dv_err *err);

#endif
