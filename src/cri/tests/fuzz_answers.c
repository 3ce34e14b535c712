/* What a runtime answers. A listing is read in place as it is read whole: whatever the generated
 * type accepts is accepted, with the same ids, pods and states. Every other answer is accepted only
 * with what its users rely on.
 *
 * Input: a byte that says what it is, and the message. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "cri/cri.h"
#include "cri/cri_able.h"
#include "cri/cri_answer.h"
#include "cri/cri_list.h"
#include "pb/pb.h"
#include "proto/cri_v1.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the generated types have of one thing. */
struct seen {
    const char *id;
    const char *uid;
    int state;
};

/* Whether the next of the list is this one, if it is one that is listed. */
static void check_listed(const struct dv_cri_list *list, size_t *at, const struct seen *seen)
{
    const struct dv_cri_listed *listed = *at < list->n ? &list->v[*at] : NULL;

    if (!listed || !dv_str_eq(listed->id, dv_str_from_c(seen->id)) ||
        !dv_str_eq(listed->uid, dv_str_from_c(seen->uid))) {
        /* It was left out, and so it has no id, or nothing that could be a uid. */
        assert(seen->id[0] == '\0' || !seen->uid || seen->uid[0] == '\0' || seen->uid[0] == '.' ||
               strlen(seen->uid) > 63 ||
               seen->uid[strspn(seen->uid, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                           "0123456789-_.")] != '\0');
        return;
    }
    assert((int32_t)listed->state == seen->state && strchr(seen->uid, '/') == NULL);
    (*at)++;
}

static void check_sandboxes(dv_str message, struct dv_arena *arena)
{
    struct dv_cri_list list = {.n = 0};
    struct dv_err err;
    const CriV1__ListPodSandboxResponse *whole =
        dv_pb_decode(&cri_v1__list_pod_sandbox_response__descriptor, message, arena, &err);
    bool is_read = dv_cri_list_read(DV_CRI_SANDBOX, message, arena, &list, &err);
    size_t at = 0;

    assert(is_read || (!whole && err.code == DV_INTERNAL));
    for (size_t i = 0; whole && i < whole->n_items; i++) {
        const CriV1__PodSandbox *item = whole->items[i];
        struct seen seen = {item->id, NULL, (int)item->state};

        for (size_t j = 0; j < item->n_labels; j++)
            if (strcmp(item->labels[j]->key, DV_CRI_LABEL_POD_UID) == 0)
                seen.uid = item->labels[j]->value;
        check_listed(&list, &at, &seen);
    }
    assert(!whole || at == list.n);
}

static void check_containers(dv_str message, struct dv_arena *arena)
{
    struct dv_cri_list list = {.n = 0};
    struct dv_err err;
    const CriV1__ListContainersResponse *whole =
        dv_pb_decode(&cri_v1__list_containers_response__descriptor, message, arena, &err);
    bool is_read = dv_cri_list_read(DV_CRI_CONTAINER, message, arena, &list, &err);
    size_t at = 0;

    assert(is_read || (!whole && err.code == DV_INTERNAL));
    for (size_t i = 0; whole && i < whole->n_containers; i++) {
        const CriV1__Container *item = whole->containers[i];
        struct seen seen = {item->id, NULL, (int)item->state};

        for (size_t j = 0; j < item->n_labels; j++)
            if (strcmp(item->labels[j]->key, DV_CRI_LABEL_POD_UID) == 0)
                seen.uid = item->labels[j]->value;
        check_listed(&list, &at, &seen);
    }
    assert(!whole || at == list.n);
}

static void check_event(dv_str message, struct dv_arena *arena)
{
    struct dv_err err;
    const CriV1__ContainerEventResponse *whole =
        dv_pb_decode(&cri_v1__container_event_response__descriptor, message, arena, &err);
    dv_str uid;
    dv_str id;
    bool is_read = dv_cri_event_read(message, &uid, &id, &err);

    assert(is_read || !whole);
    if (!whole)
        return;
    assert(dv_str_eq(id, dv_str_from_c(whole->container_id)));
    assert(uid.n == 0 || (whole->pod_sandbox_status && uid.p[0] != '.'));
}

static void check_statuses(dv_str message, struct dv_arena *arena)
{
    struct dv_err err;
    const CriV1__PodSandboxStatusResponse *sandbox =
        dv_pb_decode(&cri_v1__pod_sandbox_status_response__descriptor, message, arena, &err);
    const CriV1__ContainerStatusResponse *container =
        dv_pb_decode(&cri_v1__container_status_response__descriptor, message, arena, &err);

    if (sandbox && dv_cri_answer_check(DV_CRI_POD_SANDBOX_STATUS, sandbox, &err))
        assert(sandbox->status->id[0] && sandbox->status->metadata && sandbox->status->state <= 1);
    if (container && dv_cri_answer_check(DV_CRI_CONTAINER_STATUS, container, &err))
        assert(container->status->id[0] && container->status->metadata &&
               container->status->image && container->status->state <= 3);
}

static void check_state(dv_str message, struct dv_arena *arena)
{
    struct dv_err err;
    const CriV1__StatusResponse *status =
        dv_pb_decode(&cri_v1__status_response__descriptor, message, arena, &err);
    struct dv_cri_runtime old = {.name = DV_STR("containerd"), .version = DV_STR("1.6.20~ds1")};
    struct dv_cri_runtime new = {.name = DV_STR("containerd"), .version = DV_STR("v2.1.9")};

    if (!status)
        return;
    dv_cri_able_status(status, arena, &old);
    dv_cri_able_status(status, arena, &new);
    assert(!old.has_cdi && (new.has_cdi || new.n_cdi_dirs == 0));
    if (dv_cri_able_check(status, "RuntimeReady", "runtime", &err))
        assert(status->status && status->status->n_conditions > 0);
    else
        assert(err.code == DV_FAILED_PRECONDITION);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const checks[])(dv_str message, struct dv_arena * arena) = {
        check_sandboxes, check_containers, check_event, check_statuses, check_state,
    };
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();

    if (size > 0)
        checks[data[0] % DV_COUNT(checks)]((dv_str){(const char *)data + 1, size - 1}, arena);
    return 0;
}
