/* job_create.c - makes a container at the runtime:
 *
 *     handler -> objects -> logs counted -> plugins asked -> image looked at -> environment
 *             -> subPaths bound, one after the other -> files made -> CreateContainer
 *
 * What fails before the call itself is a mistake in the container's config. */
#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "cdi/cdi.h"
#include "cdidir/cdidir.h"
#include "cri/cri.h"
#include "loop/loop.h"
#include "pod/pod.h"
#include "pod/runner.h"
#include "pod/runner/given.h"
#include "pod/runner/pod_objects.h"
#include "pod/runner/runner_job.h"
#include "pod/runner/runner_state.h"
#include "proto/cri_v1.pb-c.h"
#include "resource/resource.h"
#include "voldir/voldir.h"
#include "workload/config.h"
#include "workload/life.h"
#include "workload/volume.h"
#include "workload/workload.h"

static void fail_config(struct dv_runner_job *job, const struct dv_err *err)
{
    job->result.fault = DV_LIFE_FAULT_CONFIG;
    dv_runner_job_fail(job, err);
}

/* Ends the job between two steps when it was cut short meanwhile. */
static bool is_over(struct dv_runner_job *job)
{
    struct dv_err err;

    if (!job->is_cancelled)
        return false;
    (void)dv_fail(&err, DV_CANCELLED, "context canceled");
    dv_runner_job_fail(job, &err);
    return true;
}

/* ---- the call ---- */

static void on_created(struct dv_cri_call *call, const void *answer, const struct dv_err *err)
{
    struct dv_runner_job *job = dv_runner_job_of_call(call);
    const CriV1__CreateContainerResponse *response = answer;

    if (err) {
        job->result.fault = DV_LIFE_FAULT_CREATE;
        dv_runner_job_fail(job, err);
        return;
    }
    job->result.id = dv_str_from_c(response->container_id);
    dv_runner_job_end(job);
}

static struct dv_config_node look_at(void *ctx, dv_str host_path)
{
    struct dv_runner_job *job = ctx;
    struct stat is;

    if (stat(dv_str_to_c(host_path, job->arena), &is) < 0)
        return (struct dv_config_node){0};
    return (struct dv_config_node){
        .is_device = S_ISCHR(is.st_mode) || S_ISBLK(is.st_mode),
        .is_block = S_ISBLK(is.st_mode),
        .major = major(is.st_rdev),
        .minor = minor(is.st_rdev),
    };
}

/* Puts the edits themselves into the config where the runtime would drop the names of devices. */
static bool expand_names(struct dv_runner_job *job, CriV1__ContainerConfig *config,
                         struct dv_err *err)
{
    const struct dv_runner *runner = job->pod->runner;
    const struct dv_cri_runtime *runtime = dv_cri_runtime(runner->cri);
    const struct dv_workload_given *given = &job->part.making.given;
    struct dv_cdi_edits edits;

    if (given->n_cdi_names == 0 || (runtime && runtime->has_cdi))
        return true;
    if (!runner->options.cdi)
        return dv_fail(err, DV_FAILED_PRECONDITION,
                       "CDI device %.*s: the runtime cannot do CDI, and there are no specs",
                       DV_FMT(given->cdi_names[0]));
    return dv_cdi_dirs_resolve(runner->options.cdi, given->cdi_names, given->n_cdi_names,
                               job->arena, &edits, err) &&
           dv_config_expand_cdi(config, &edits, &runner->node, look_at, job, job->arena, err);
}

static uint32_t attempt_of_sandbox(const struct dv_runner_job *job)
{
    const struct dv_cri_pod *view = dv_cri_view_pod(job->pod->runner->cri, job->pod->uid);

    for (size_t i = 0; view && i < view->n_sandboxes; i++)
        if (dv_str_eq(dv_str_from_c(view->sandboxes[i]->id), job->action.sandbox_id))
            return view->sandboxes[i]->metadata->attempt;
    return 0; /* it has just been made: the first one */
}

/* Takes what plugins and claims give: their texts count in this turn only, so the container is made
 * in the same. */
static void create(struct dv_runner_job *job)
{
    struct dv_runner_making *making = &job->part.making;
    struct dv_config_notes notes = {0}; /* they were told when the sandbox was made */
    CriV1__CreateContainerRequest request = CRI_V1__CREATE_CONTAINER_REQUEST__INIT;
    struct dv_err err;

    request.config = dv_config_container(&making->input, &making->environment, making->mounts,
                                         making->files.termination_path, job->arena, &err);
    request.sandbox_config = dv_config_sandbox(making->input.node, &job->workload,
                                               attempt_of_sandbox(job), job->arena, &notes, &err);
    if (!request.config || !request.sandbox_config || !expand_names(job, request.config, &err)) {
        fail_config(job, &err);
        return;
    }
    request.pod_sandbox_id = dv_str_to_c(job->action.sandbox_id, job->arena);
    dv_runner_job_call(job, DV_CRI_CREATE_CONTAINER, &request.base, on_created);
}

/* ---- files ---- */

static void on_files(struct dv_voldir_container *op, const struct dv_err *err)
{
    struct dv_runner_job *job = DV_CONTAINER(op, struct dv_runner_job, part.making.files);

    if (err)
        fail_config(job, err);
    else if (!is_over(job))
        create(job);
}

static void make_files(struct dv_runner_job *job)
{
    struct dv_runner_making *making = &job->part.making;
    dv_str hosts;

    making->files = (struct dv_voldir_container){
        .done = on_files,
        .plan = job->plan,
        .container = job->action.container,
        .arena = job->arena,
    };
    if (dv_config_hosts(making->input.node, &job->workload, job->arena, &hosts))
        making->files.hosts = hosts;
    dv_voldir_container(&making->files, job->pod->runner->loop);
}

/* ---- mounts ---- */

static void next_mount(struct dv_runner_job *job);

static void on_bound(struct dv_voldir_sub_path *op, const struct dv_err *err)
{
    struct dv_runner_job *job = DV_CONTAINER(op, struct dv_runner_job, part.making.sub_path);
    struct dv_runner_making *making = &job->part.making;

    if (err) {
        fail_config(job, err);
        return;
    }
    making->mounts[making->i_mount++].host_path = op->path;
    if (!is_over(job))
        next_mount(job);
}

/* Goes on to the next mount that needs to be bound; after the last one to the files. */
static void next_mount(struct dv_runner_job *job)
{
    struct dv_runner_making *making = &job->part.making;
    const struct dv_api_container *container = making->input.container;

    while (making->i_mount < container->n_volume_mounts &&
           (making->sub_paths[making->i_mount].n == 0 ||
            making->mounts[making->i_mount].host_path.n == 0)) /* of an image the runtime does it */
        making->i_mount++;
    if (making->i_mount == container->n_volume_mounts) {
        make_files(job);
        return;
    }
    making->sub_path = (struct dv_voldir_sub_path){
        .done = on_bound,
        .plan = job->plan,
        .volume = container->volume_mounts[making->i_mount].name,
        .sub_path = making->sub_paths[making->i_mount],
        .container = job->action.container,
        .index = making->i_mount,
        .arena = job->arena,
    };
    dv_voldir_sub_path(&making->sub_path, job->pod->runner->loop);
}

/* What is known of a pod's volumes, by name: a container may mount thousands of them. */
struct by_name {
    struct dv_map planned; /* dv_volume */
    struct dv_map images;  /* dv_api_image_volume_source */
};

static void index_volumes(const struct dv_runner_job *job, struct by_name *volumes)
{
    const struct dv_api_pod_spec *spec = &dv_runner_job_pod(job)->spec;

    dv_map_init(&volumes->planned);
    dv_map_init(&volumes->images);
    for (size_t i = 0; i < job->plan->n_volumes; i++)
        (void)dv_map_set(&volumes->planned, job->plan->volumes[i].name, &job->plan->volumes[i]);
    for (size_t i = 0; i < spec->n_volumes; i++)
        if (spec->volumes[i].volume_source.image)
            (void)dv_map_set(&volumes->images, spec->volumes[i].name,
                             spec->volumes[i].volume_source.image);
}

static void drop_index(struct by_name *volumes)
{
    dv_map_fini(&volumes->planned);
    dv_map_fini(&volumes->images);
}

static bool find_mount(struct dv_runner_job *job, const struct by_name *volumes, dv_str name,
                       struct dv_workload_mount *mount, struct dv_err *err)
{
    const struct dv_volume *volume = dv_map_get(&volumes->planned, name);
    const struct dv_api_image_volume_source *image = dv_map_get(&volumes->images, name);

    if (!volume)
        return dv_fail(err, DV_NOT_FOUND,
                       "cannot find volume \"%.*s\" to mount into container \"%.*s\"", DV_FMT(name),
                       DV_FMT(job->part.making.input.container->name));
    *mount =
        (struct dv_workload_mount){.host_path = volume->path, .is_read_only = volume->is_read_only};
    if (volume->kind != DV_VOLUME_IMAGE || !image)
        return true;
    /* the runtime mounts the image, and has to have it */
    mount->image_reference = image->reference;
    return dv_config_image(mount->image_reference, job->arena, &mount->image, err);
}

static bool find_mounts(struct dv_runner_job *job, struct dv_err *err)
{
    DV_CLEANUP(drop_index) struct by_name volumes = {0};
    struct dv_runner_making *making = &job->part.making;
    const struct dv_api_container *container = making->input.container;

    index_volumes(job, &volumes);
    making->mounts = DV_NEW_ARRAY(job->arena, struct dv_workload_mount, container->n_volume_mounts);
    for (size_t i = 0; i < container->n_volume_mounts; i++)
        if (!find_mount(job, &volumes, container->volume_mounts[i].name, &making->mounts[i], err))
            return false;
    return dv_config_sub_paths(&making->input, &making->environment, job->arena, &making->sub_paths,
                               err);
}

/* ---- the image, and what is computed ---- */

/* Texts that plugins and claims own are copied: the next steps take turns of the loop. */
static bool gather(struct dv_runner_job *job, struct dv_err *err)
{
    const struct dv_runner_options *options = &job->pod->runner->options;
    struct dv_runner_making *making = &job->part.making;
    struct dv_workload_given given;

    if (!dv_given_gather(options->devices, options->claims, dv_runner_job_pod(job), job->pod->uid,
                         making->input.container, job->arena, &given, err))
        return false;
    dv_given_copy(&given, job->arena, &making->given);
    making->input.given = &making->given;
    return dv_config_environment(&making->input, job->arena, &making->environment, err) &&
           find_mounts(job, err);
}

static void on_image(struct dv_cri_call *call, const void *answer, const struct dv_err *err)
{
    struct dv_runner_job *job = dv_runner_job_of_call(call);
    struct dv_config_image *image = &job->part.making.input.image;
    const CriV1__ImageStatusResponse *response = answer;
    struct dv_err failed;

    if (err) {
        fail_config(job, err);
        return;
    }
    image->id = job->action.image_id;
    if (response->image) {
        image->has_uid = response->image->uid != NULL;
        image->uid = response->image->uid ? response->image->uid->value : 0;
        image->username = dv_str_from_c(response->image->username);
    }
    if (gather(job, &failed))
        next_mount(job);
    else
        fail_config(job, &failed);
}

static void look_at_image(struct dv_runner_job *job)
{
    CriV1__ImageStatusRequest request = CRI_V1__IMAGE_STATUS_REQUEST__INIT;

    request.image = dv_runner_job_image(job, job->action.image_id);
    dv_runner_job_call(job, DV_CRI_IMAGE_STATUS, &request.base, on_image);
}

/* ---- plugins ---- */

static void on_ready(struct dv_pod_start *start, const struct dv_err *err)
{
    struct dv_runner_job *job = DV_CONTAINER(start, struct dv_runner_job, part.making.start);

    job->cancel = NULL;
    if (err)
        fail_config(job, err);
    else if (!is_over(job))
        look_at_image(job);
}

static void cancel_start(struct dv_runner_job *job)
{
    dv_pods_cancel_start(&job->part.making.start);
}

static void ask_plugins(struct dv_runner_job *job)
{
    struct dv_pod_ref ref = {.uid = job->pod->uid};

    if (job->action.container_kind == DV_WORKLOAD_EPHEMERAL) { /* it has no resources of its own */
        look_at_image(job);
        return;
    }
    job->part.making.start.done = on_ready;
    job->part.making.start.needs_plugins = true;
    job->cancel = cancel_start;
    dv_pods_start_container(job->pod->runner->options.pods, &job->part.making.start, &ref,
                            job->action.container);
}

/* ---- logs ---- */

/* Finds, on a worker thread, the number of the next log: one more than the highest n of "<n>.log*"
 * in the container's log directory. */
static void count_logs(struct dv_work *work)
{
    struct dv_runner_job *job = DV_CONTAINER(work, struct dv_runner_job, part.making.count);
    DIR *dir = opendir(job->part.making.log_dir);
    const struct dirent *entry;
    uint32_t n;

    if (!dir)
        return;
    while ((entry = readdir(dir)) != NULL) {
        dv_str name = dv_str_from_c(entry->d_name);
        size_t dot = dv_str_find_char(name, '.');

        if (dv_str_starts_with(dv_str_slice(name, dot, name.n), DV_STR(".log")) &&
            dv_str_to_u32(dv_str_slice(name, 0, dot), &n) && n < UINT32_MAX &&
            n + 1 > job->action.attempt)
            job->action.attempt = n + 1;
    }
    (void)closedir(dir);
}

static void on_counted(struct dv_work *work, const struct dv_err *err)
{
    struct dv_runner_job *job = DV_CONTAINER(work, struct dv_runner_job, part.making.count);

    (void)err; /* not cancelled here */
    if (is_over(job))
        return;
    job->part.making.input.attempt = job->action.attempt;
    ask_plugins(job);
}

/* ---- the beginning ---- */

static void on_objects(struct dv_pod_objects *op, const struct dv_err *err)
{
    struct dv_runner_job *job = DV_CONTAINER(op, struct dv_runner_job, objects);
    struct dv_runner_making *making = &job->part.making;

    job->cancel = NULL;
    if (err) {
        fail_config(job, err);
        return;
    }
    if (job->pod->runner->api.n_ports > 0) {
        op->objects.services = &job->pod->runner->api;
        op->objects.n_services = 1;
    }
    dv_runner_job_plan(job);
    if (!job->action.counts_logs) {
        ask_plugins(job);
        return;
    }
    making->log_dir = dv_str_to_c(dv_str_printf(job->arena, "%.*s/%.*s", DV_FMT(job->plan->log_dir),
                                                DV_FMT(job->action.container)),
                                  job->arena);
    making->count = (struct dv_work){.run = count_logs, .done = on_counted};
    dv_work_start(&making->count, job->pod->runner->loop);
}

static void on_handler(struct dv_runner_job *job, const struct dv_err *err)
{
    if (err)
        fail_config(job, err);
    else
        dv_runner_job_get_objects(job, on_objects);
}

void dv_runner_begin_create(struct dv_runner_job *job)
{
    job->part.making = (struct dv_runner_making){
        .input =
            {
                    .node = &job->pod->runner->node,
                    .pod = &job->workload,
                    .objects = &job->objects.objects,
                    .container = job->action.spec,
                    .kind = job->action.container_kind,
                    .attempt = job->action.attempt,
                    },
    };
    dv_runner_job_get_handler(job, on_handler);
}
