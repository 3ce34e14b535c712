#include "cri/cri_keep.h"

#include <assert.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/str.h"
#include "pb/pb.h"
#include "proto/cri_v1.pb-c.h"

/* A deep copy, by way of the wire: the first decoding tells how much memory the second one needs.
 */
static const void *copy(const ProtobufCMessage *message, struct dv_arena *scratch,
                        struct dv_arena **arena)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *trial = dv_arena_new();
    size_t n = dv_pb_size(message);
    char *text = dv_arena_alloc_raw(scratch, n, 1);
    dv_str bytes = {text, n};
    struct dv_err err;
    const void *kept;

    dv_pb_encode(message, text, n);
    kept = dv_pb_decode(message->descriptor, bytes, trial, &err);
    assert(kept); /* it was decoded before */
    *arena = dv_arena_new_sized(dv_arena_used_bytes(trial));
    kept = dv_pb_decode(message->descriptor, bytes, *arena, &err);
    assert(kept);
    return kept;
}

const CriV1__PodSandboxStatus *dv_cri_keep_sandbox(const CriV1__PodSandboxStatus *status,
                                                   struct dv_arena **arena)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    CriV1__PodSandboxStatus slim = *status;

    slim.n_labels = slim.n_annotations = 0;
    return copy(&slim.base, scratch, arena);
}

/* Keeps of mounts only what is mounted where. */
static CriV1__Mount **slim_mounts(const CriV1__ContainerStatus *status, struct dv_arena *arena)
{
    CriV1__Mount **mounts = DV_NEW_ARRAY(arena, CriV1__Mount *, status->n_mounts);

    for (size_t i = 0; i < status->n_mounts; i++) {
        mounts[i] = DV_NEW(arena, CriV1__Mount);
        cri_v1__mount__init(mounts[i]);
        mounts[i]->container_path = status->mounts[i]->container_path;
        mounts[i]->host_path = status->mounts[i]->host_path;
    }
    return mounts;
}

const CriV1__ContainerStatus *dv_cri_keep_container(const CriV1__ContainerStatus *status,
                                                    struct dv_arena **arena)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *scratch = dv_arena_new();
    CriV1__ContainerStatus slim = *status;
    CriV1__ImageSpec image = *status->image;

    image.n_annotations = 0;
    slim.image = &image;
    slim.mounts = slim_mounts(status, scratch);
    slim.n_labels = 0;
    slim.resources = NULL;
    return copy(&slim.base, scratch, arena);
}
