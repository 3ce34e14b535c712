/* runner_images.c - one look at the images after the other:
 *
 *     ListImages -> ListContainers: which are used -> ImageFsInfo: where they are -> statvfs, a job
 *         -> too full: RemoveImage, one after the other, until enough is free -> told */
#include "pod/runner/runner_images.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cluster/recorder.h"
#include "cri/cri.h"
#include "loop/loop.h"
#include "pod/runner.h"
#include "pod/runner/image_gc.h"
#include "pod/runner/runner_state.h"
#include "proto/cri_v1.pb-c.h"
#include "resource/resource.h"
#include "workload/config.h"

/* How often images are looked at, as in the reference; and before the first time, how often whether
 * that can be done. */
#define LOOK_MS (5u * 60u * 1000u)
#define FIRST_MS 2000u

struct dv_runner_images {
    struct dv_runner *runner;
    struct dv_timer timer;
    struct dv_image_book book;
    bool has_failed; /* the last time */
    /* The one that is under way. */
    bool is_busy;
    struct dv_arena *arena;
    struct dv_cri_call call;
    bool is_calling;
    struct dv_work work;
    dv_str dir; /* where images are */
    uint64_t capacity;
    uint64_t available;
    struct dv_err disk_err;
    uint64_t now_ns;
    struct dv_image *images;
    size_t n_images;
    const struct dv_image **chosen;
    size_t n_chosen;
    size_t i_chosen;
    uint64_t wanted;
    uint64_t freed;
    struct dv_err remove_err; /* the first one; DV_OK: none */
};

/* ---- the end ---- */

/* Events of the node name it as its uid, as in the reference. */
static void note(const struct dv_runner_images *images, const char *reason, const char *message)
{
    const struct dv_runner_options *options = &images->runner->options;
    struct dv_note_subject subject = {.kind = DV_STR("Node"),
                                      .api_version = DV_STR("v1"),
                                      .name = options->node_name,
                                      .uid = options->node_name};

    dv_recorder_note(options->recorder, &subject, true, dv_str_from_c(reason),
                     dv_str_from_c(message));
}

/* `err` NULL: it went well. Once may be bad luck; twice is told. */
static void end(struct dv_runner_images *images, const struct dv_err *err)
{
    struct dv_runner *runner = images->runner;

    if (err && err->code != DV_CANCELLED) {
        dv_log(DV_LOG_WARN, "pod: images that nobody uses could not be removed", DV_F_ERR(err));
        if (images->has_failed)
            note(images, "ImageGCFailed", err->msg);
    }
    images->has_failed = err != NULL;
    images->is_busy = false;
    dv_arena_free(images->arena);
    images->arena = NULL;
    dv_runner_check_closed(runner);
}

static void
call(struct dv_runner_images *images, enum dv_cri_method method, const ProtobufCMessage *request,
     void (*done)(struct dv_cri_call *call, const void *answer, const struct dv_err *err))
{
    images->call = (struct dv_cri_call){.method = method, .arena = images->arena, .done = done};
    images->is_calling = true;
    dv_cri_call_start(images->runner->cri, &images->call, request);
}

static struct dv_runner_images *of_call(struct dv_cri_call *call)
{
    struct dv_runner_images *images = DV_CONTAINER(call, struct dv_runner_images, call);

    images->is_calling = false;
    return images;
}

/* ---- removed ---- */

static void end_removal(struct dv_runner_images *images)
{
    struct dv_err err;

    if (images->remove_err.code != DV_OK) {
        err = images->remove_err;
        (void)dv_wrap(&err,
                      "wanted to free %llu bytes, but freed %llu bytes space with errors in image "
                      "deletion",
                      (unsigned long long)images->wanted, (unsigned long long)images->freed);
        end(images, &err);
        return;
    }
    if (images->freed >= images->wanted) {
        end(images, NULL);
        return;
    }
    (void)dv_fail(&err, DV_RESOURCE_EXHAUSTED,
                  "Failed to garbage collect required amount of images. Attempted to free %llu "
                  "bytes, but only found %llu bytes eligible to free.",
                  (unsigned long long)images->wanted, (unsigned long long)images->freed);
    note(images, "FreeDiskSpaceFailed", err.msg);
    end(images, &err);
}

static void remove_next(struct dv_runner_images *images);

static void on_removed(struct dv_cri_call *done, const void *answer, const struct dv_err *err)
{
    struct dv_runner_images *images = of_call(done);
    const struct dv_image *image = images->chosen[images->i_chosen++];

    (void)answer; /* it is empty */
    if (err && images->remove_err.code == DV_OK)
        images->remove_err = *err;
    if (!err) {
        dv_log(DV_LOG_INFO, "pod: an image that nobody uses was removed: the disk is nearly full",
               DV_F_STR("image", image->n_names > 0 ? image->names[0] : image->id));
        images->freed = dv_u64_add_clamped(images->freed, image->size_bytes);
    }
    if (images->runner->is_closing)
        end(images, NULL);
    else
        remove_next(images);
}

static void remove_next(struct dv_runner_images *images)
{
    CriV1__RemoveImageRequest request = CRI_V1__REMOVE_IMAGE_REQUEST__INIT;
    CriV1__ImageSpec image = CRI_V1__IMAGE_SPEC__INIT;

    if (images->i_chosen == images->n_chosen || images->freed >= images->wanted) {
        end_removal(images);
        return;
    }
    image.image = dv_str_to_c(images->chosen[images->i_chosen]->id, images->arena);
    request.image = &image;
    call(images, DV_CRI_REMOVE_IMAGE, &request.base, on_removed);
}

/* ---- the disk ---- */

static void look_at_disk(struct dv_work *work)
{
    struct dv_runner_images *images = DV_CONTAINER(work, struct dv_runner_images, work);
    struct statvfs about;

    if (statvfs(images->dir.p, &about) < 0) {
        (void)dv_fail_errno(&images->disk_err, errno, "look at the disk of images, %s",
                            images->dir.p);
        return;
    }
    images->capacity = (uint64_t)about.f_blocks * about.f_frsize;
    images->available = (uint64_t)about.f_bavail * about.f_frsize;
    (void)dv_succeed(&images->disk_err);
}

static void on_disk(struct dv_work *work, const struct dv_err *err)
{
    struct dv_runner_images *images = DV_CONTAINER(work, struct dv_runner_images, work);
    const struct dv_image_policy *policy = &images->runner->options.images;
    struct dv_err fault;

    if (err || images->disk_err.code != DV_OK) {
        end(images, err ? err : &images->disk_err);
        return;
    }
    if (images->capacity == 0) {
        (void)dv_fail(&fault, DV_FAILED_PRECONDITION, "invalid capacity 0 on image filesystem");
        note(images, "InvalidDiskCapacity", fault.msg);
        end(images, &fault);
        return;
    }
    images->wanted = dv_image_gc_excess(policy, images->capacity, images->available);
    images->n_chosen = dv_image_gc_choose(&images->book, policy, images->images, images->n_images,
                                          images->now_ns, images->arena, &images->chosen);
    if (images->wanted == 0)
        end(images, NULL);
    else
        remove_next(images);
}

static void on_fs_info(struct dv_cri_call *done, const void *answer, const struct dv_err *err)
{
    struct dv_runner_images *images = of_call(done);
    const CriV1__ImageFsInfoResponse *info = answer;
    struct dv_err fault;

    if (err) {
        end(images, err);
        return;
    }
    if (info->n_image_filesystems == 0 || !info->image_filesystems[0]->fs_id ||
        info->image_filesystems[0]->fs_id->mountpoint[0] != '/') {
        (void)dv_fail(&fault, DV_FAILED_PRECONDITION,
                      "the runtime does not tell where its images are");
        end(images, &fault);
        return;
    }
    images->dir = dv_str_from_c(info->image_filesystems[0]->fs_id->mountpoint);
    images->work = (struct dv_work){.run = look_at_disk, .done = on_disk};
    dv_work_start(&images->work, images->runner->loop);
}

/* ---- what is used ---- */

typedef DV_VEC(dv_str) name_list;

static void add_name(name_list *used, dv_str name, struct dv_arena *arena)
{
    if (name.n > 0)
        *dv_vec_add_in(used, arena) = name;
}

/* Adds the images of a pod whose containers are not made yet: they were not pulled to be
 * removed. */
static void add_pod(name_list *used, const struct dv_api_pod *pod, struct dv_arena *arena)
{
    size_t n = pod->spec.n_containers + pod->spec.n_init_containers;

    for (size_t i = 0; i < n; i++) {
        const struct dv_api_container *container =
            i < pod->spec.n_containers ? &pod->spec.containers[i]
                                       : &pod->spec.init_containers[i - pod->spec.n_containers];
        struct dv_err err;
        dv_str image;

        if (dv_config_image(container->image, arena, &image, &err))
            add_name(used, image, arena);
    }
}

static void add_all(const struct dv_runner_images *images,
                    const CriV1__ListContainersResponse *list, name_list *used)
{
    const struct dv_runner *runner = images->runner;
    const struct dv_cri_runtime *runtime = dv_cri_runtime(runner->cri);
    const struct dv_map_entry *entry;

    if (runtime) /* only younger runtimes pin it */
        add_name(used, runtime->sandbox_image, images->arena);
    for (size_t i = 0; i < list->n_containers; i++) {
        const CriV1__Container *container = list->containers[i];

        if (container->image)
            add_name(used, dv_str_from_c(container->image->image), images->arena);
        add_name(used, dv_str_from_c(container->image_ref), images->arena);
        add_name(used, dv_str_from_c(container->image_id), images->arena);
    }
    for (size_t at = 0; (entry = dv_map_next(&runner->pods, &at)) != NULL;) {
        const struct dv_runner_pod *pod = entry->value;

        if (pod->object)
            add_pod(used, pod->object->value, images->arena);
    }
}

static void on_containers(struct dv_cri_call *done, const void *answer, const struct dv_err *err)
{
    struct dv_runner_images *images = of_call(done);
    CriV1__ImageFsInfoRequest request = CRI_V1__IMAGE_FS_INFO_REQUEST__INIT;
    name_list used = {0};

    if (err) {
        end(images, err);
        return;
    }
    add_all(images, answer, &used);
    images->now_ns = dv_loop_now_ns(images->runner->loop);
    dv_image_book_update(&images->book, images->images, images->n_images, used.v, used.n,
                         images->now_ns);
    call(images, DV_CRI_IMAGE_FS_INFO, &request.base, on_fs_info);
}

/* ---- what there is ---- */

static void read_image(const CriV1__Image *answer, struct dv_arena *arena, struct dv_image *image)
{
    dv_str *names = DV_NEW_ARRAY(arena, dv_str, answer->n_repo_tags + answer->n_repo_digests);

    *image = (struct dv_image){
        .id = dv_str_from_c(answer->id),
        .names = names,
        .size_bytes = answer->size,
        .is_pinned = answer->pinned,
    };
    for (size_t i = 0; i < answer->n_repo_tags; i++)
        names[image->n_names++] = dv_str_from_c(answer->repo_tags[i]);
    for (size_t i = 0; i < answer->n_repo_digests; i++)
        names[image->n_names++] = dv_str_from_c(answer->repo_digests[i]);
}

static void on_images(struct dv_cri_call *done, const void *answer, const struct dv_err *err)
{
    struct dv_runner_images *images = of_call(done);
    const CriV1__ListImagesResponse *list = answer;
    CriV1__ListContainersRequest request = CRI_V1__LIST_CONTAINERS_REQUEST__INIT;

    if (err) {
        end(images, err);
        return;
    }
    images->n_images = list->n_images;
    images->images = DV_NEW_ARRAY(images->arena, struct dv_image, list->n_images);
    for (size_t i = 0; i < list->n_images; i++)
        read_image(list->images[i], images->arena, &images->images[i]);
    call(images, DV_CRI_LIST_CONTAINERS, &request.base, on_containers);
}

static void start(struct dv_runner_images *images)
{
    CriV1__ListImagesRequest request = CRI_V1__LIST_IMAGES_REQUEST__INIT;

    images->is_busy = true;
    images->arena = dv_arena_new();
    images->i_chosen = 0;
    images->freed = 0;
    (void)dv_succeed(&images->remove_err);
    call(images, DV_CRI_LIST_IMAGES, &request.base, on_images);
}

/* ---- life ---- */

static void on_timer(struct dv_timer *timer)
{
    struct dv_runner_images *images = DV_CONTAINER(timer, struct dv_runner_images, timer);
    struct dv_runner *runner = images->runner;
    struct dv_err err;
    /* Before all pods are known, it is not known either which images they use. */
    bool can_start = runner->cri && runner->is_settled && !images->is_busy &&
                     dv_cri_check_runtime(runner->cri, &err);

    dv_timer_start(timer, runner->loop,
                   dv_loop_now_ms(runner->loop) + (can_start ? LOOK_MS : FIRST_MS), on_timer);
    if (can_start)
        start(images);
}

struct dv_runner_images *dv_runner_images_new(struct dv_runner *runner)
{
    struct dv_runner_images *images = DV_ALLOC(struct dv_runner_images);

    images->runner = runner;
    dv_image_book_init(&images->book);
    if (runner->options.images.high_percent > 0 && runner->options.images.high_percent < 100)
        dv_timer_start(&images->timer, runner->loop, dv_loop_now_ms(runner->loop) + FIRST_MS,
                       on_timer);
    return images;
}

void dv_runner_images_stop(struct dv_runner_images *images)
{
    dv_timer_cancel(&images->timer);
    if (images->is_calling)
        dv_cri_call_cancel(&images->call);
    else if (images->is_busy)
        dv_work_cancel(&images->work);
}

bool dv_runner_images_are_busy(const struct dv_runner_images *images)
{
    return images->is_busy;
}

void dv_runner_images_free(struct dv_runner_images *images)
{
    if (!images)
        return;
    dv_timer_cancel(&images->timer);
    dv_image_book_fini(&images->book);
    free(images);
}
