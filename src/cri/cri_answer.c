#include "cri/cri_answer.h"

#include "base/err.h"
#include "proto/cri_v1.pb-c.h"

static bool check_id(const char *id, const char *what, struct dv_err *err)
{
    return id[0] != '\0' || dv_fail(err, DV_INTERNAL, "the answer has no %s", what);
}

static bool check_sandbox_status(const CriV1__PodSandboxStatus *status, struct dv_err *err)
{
    if (!status)
        return dv_fail(err, DV_INTERNAL, "the answer has no status");
    if (!check_id(status->id, "sandbox id", err))
        return false;
    if (!status->metadata)
        return dv_fail(err, DV_INTERNAL, "sandbox %s has no metadata", status->id);
    if (status->state != CRI_V1__POD_SANDBOX_STATE__SANDBOX_READY &&
        status->state != CRI_V1__POD_SANDBOX_STATE__SANDBOX_NOTREADY)
        return dv_fail(err, DV_INTERNAL, "sandbox %s has the unknown state %d", status->id,
                       (int)status->state);
    return true;
}

static bool check_container_status(const CriV1__ContainerStatus *status, struct dv_err *err)
{
    if (!status)
        return dv_fail(err, DV_INTERNAL, "the answer has no status");
    if (!check_id(status->id, "container id", err))
        return false;
    if (!status->metadata)
        return dv_fail(err, DV_INTERNAL, "container %s has no metadata", status->id);
    if (!status->image)
        return dv_fail(err, DV_INTERNAL, "container %s has no image", status->id);
    if ((int)status->state < CRI_V1__CONTAINER_STATE__CONTAINER_CREATED ||
        status->state > CRI_V1__CONTAINER_STATE__CONTAINER_UNKNOWN)
        return dv_fail(err, DV_INTERNAL, "container %s has the unknown state %d", status->id,
                       (int)status->state);
    return true;
}

/* These begin something or are asked for one thing; all other answers are fine when empty. */
bool dv_cri_answer_check(enum dv_cri_method method, const void *answer, struct dv_err *err)
{
    const CriV1__PodSandboxStatusResponse *sandbox = answer;
    const CriV1__ContainerStatusResponse *container = answer;
    const CriV1__RunPodSandboxResponse *run = answer;
    const CriV1__CreateContainerResponse *create = answer;
    const CriV1__PullImageResponse *pull = answer;
    const CriV1__ImageStatusResponse *image = answer;

    if (method == DV_CRI_POD_SANDBOX_STATUS)
        return check_sandbox_status(sandbox->status, err);
    if (method == DV_CRI_CONTAINER_STATUS)
        return check_container_status(container->status, err);
    if (method == DV_CRI_RUN_POD_SANDBOX)
        return check_id(run->pod_sandbox_id, "sandbox id", err);
    if (method == DV_CRI_CREATE_CONTAINER)
        return check_id(create->container_id, "container id", err);
    if (method == DV_CRI_PULL_IMAGE)
        return check_id(pull->image_ref, "image reference", err);
    if (method == DV_CRI_IMAGE_STATUS && image->image)
        return check_id(image->image->id, "image id", err);
    return true;
}
