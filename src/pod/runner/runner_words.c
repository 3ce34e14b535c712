#include "pod/runner/runner_words.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/list.h"
#include "cri/cri.h"
#include "pod/runner/runner_state.h"
#include "proto/cri_v1.pb-c.h"
#include "resource/values.h"
#include "voldir/voldir.h"
#include "workload/config.h"

struct words {
    struct dv_runner_pod *pod;
    struct dv_link link;
    dv_str id; /* of the container */
    struct dv_arena *arena;
    struct dv_voldir_message op;
    dv_str text;
    bool is_read;
};

static struct words *find(const struct dv_runner_pod *pod, dv_str id)
{
    struct dv_link *link;

    DV_LIST_EACH (&pod->words, link) {
        struct words *words = DV_CONTAINER(link, struct words, link);

        if (dv_str_eq(words->id, id))
            return words;
    }
    return NULL;
}

static void free_words(struct words *words)
{
    dv_link_remove(&words->link);
    dv_arena_free(words->arena);
    free(words);
}

static void on_read(struct dv_voldir_message *op, const struct dv_err *err)
{
    struct words *words = DV_CONTAINER(op, struct words, op);
    struct dv_runner_pod *pod = words->pod;

    words->is_read = true;
    if (!err)
        words->text = op->text;
    pod->n_reading--;
    dv_runner_pod_look(pod);
}

/* The host's file behind the container's terminationMessagePath. */
static dv_str file_of(const CriV1__ContainerStatus *status, dv_str path)
{
    for (size_t i = 0; path.n > 0 && i < status->n_mounts; i++)
        if (dv_str_eq(dv_str_from_c(status->mounts[i]->container_path), path))
            return dv_str_from_c(status->mounts[i]->host_path);
    return DV_STR("");
}

static struct dv_str_entry *entries(CriV1__ContainerStatus__AnnotationsEntry *const *list, size_t n,
                                    struct dv_arena *arena)
{
    struct dv_str_entry *made = DV_NEW_ARRAY(arena, struct dv_str_entry, n);

    for (size_t i = 0; i < n; i++)
        made[i] = (struct dv_str_entry){dv_str_from_c(list[i]->key), dv_str_from_c(list[i]->value)};
    return made;
}

static void read_one(struct dv_runner_pod *pod, const CriV1__ContainerStatus *status)
{
    struct words *words = DV_ALLOC(struct words);
    struct dv_config_memo memo;

    words->pod = pod;
    words->arena = dv_arena_new();
    words->id = dv_str_copy(dv_str_from_c(status->id), words->arena);
    dv_list_push(&pod->words, &words->link);
    dv_config_read_annotations(entries(status->annotations, status->n_annotations, words->arena),
                               status->n_annotations, words->arena, &memo);
    words->op = (struct dv_voldir_message){
        .done = on_read,
        .arena = words->arena,
        .termination_path =
            dv_str_copy(file_of(status, memo.termination_message_path), words->arena),
    };
    if (dv_str_eq(memo.termination_message_policy, DV_STR("FallbackToLogsOnError")) &&
        status->exit_code != 0)
        words->op.log_path = dv_str_copy(dv_str_from_c(status->log_path), words->arena);
    if (words->op.termination_path.n == 0 && words->op.log_path.n == 0) {
        words->is_read = true;
        return;
    }
    pod->n_reading++;
    dv_voldir_message(&words->op, pod->runner->loop);
}

static bool is_in(const struct dv_cri_pod *view, dv_str id)
{
    for (size_t i = 0; view && i < view->n_containers; i++)
        if (dv_str_eq(dv_str_from_c(view->containers[i]->id), id))
            return true;
    return false;
}

bool dv_runner_words_read(struct dv_runner_pod *pod, const struct dv_cri_pod *view)
{
    struct dv_link *link = dv_list_first(&pod->words);

    while (link && link != &pod->words.head) {
        struct words *words = DV_CONTAINER(link, struct words, link);

        link = link->next;
        if (words->is_read && !is_in(view, words->id))
            free_words(words);
    }
    for (size_t i = 0; view && i < view->n_containers; i++)
        if (view->containers[i]->state == CRI_V1__CONTAINER_STATE__CONTAINER_EXITED &&
            !find(pod, dv_str_from_c(view->containers[i]->id)))
            read_one(pod, view->containers[i]);
    return pod->n_reading == 0;
}

dv_str dv_runner_words_of(const struct dv_runner_pod *pod, dv_str id)
{
    const struct words *words = find(pod, id);

    return words ? words->text : DV_STR("");
}

void dv_runner_words_clear(struct dv_runner_pod *pod)
{
    struct dv_link *link;

    while ((link = dv_list_first(&pod->words)) != NULL)
        free_words(DV_CONTAINER(link, struct words, link));
}
