/* kube_empty.c - the kinds of which there is never an object. Their lists are empty, their watches
 * tell nothing but bookmarks, and nobody can write them: a kube-scheduler begins to work when it
 * has seen all that these lists have. */
#include "base/defs.h"
#include "base/str.h"
#include "resource/resource.h"
#include "serve/wire/kube_route.h"

#define V1 DV_STR_INIT("v1")

static const struct dv_api_version core = {{0}, V1, &dv_message_partial_object_metadata};
static const struct dv_api_version apps = {DV_STR_INIT("apps"), V1,
                                           &dv_message_partial_object_metadata};
static const struct dv_api_version batch = {DV_STR_INIT(DV_BATCH_GROUP), V1,
                                            &dv_message_partial_object_metadata};
static const struct dv_api_version networking = {DV_STR_INIT(DV_NETWORKING_GROUP), V1,
                                                 &dv_message_partial_object_metadata};
static const struct dv_api_version storage = {DV_STR_INIT("storage.k8s.io"), V1,
                                              &dv_message_partial_object_metadata};

#define KIND(of, kind_name, kind_plural, kind_singular)                                            \
    .id = DV_N_KINDS, .name = DV_STR_INIT(kind_name), .plural = DV_STR_INIT(kind_plural),          \
    .singular = DV_STR_INIT(kind_singular), .versions = &(of), .n_versions = 1

/* The formatter would align the columns of rows that are not alike. */
/* clang-format off */
static const struct dv_kind kinds[] = {
    {KIND(core, "PersistentVolume", "persistentvolumes", "persistentvolume")},
    {KIND(core, "PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim"), .is_namespaced = true},
    {KIND(core, "ReplicationController", "replicationcontrollers", "replicationcontroller"), .is_namespaced = true},
    {KIND(apps, "StatefulSet", "statefulsets", "statefulset"), .is_namespaced = true},
    {KIND(batch, "CronJob", "cronjobs", "cronjob"), .is_namespaced = true},
    {KIND(networking, "Ingress", "ingresses", "ingress"), .is_namespaced = true},
    {KIND(networking, "NetworkPolicy", "networkpolicies", "networkpolicy"), .is_namespaced = true},
    {KIND(storage, "CSIDriver", "csidrivers", "csidriver")},
    {KIND(storage, "CSINode", "csinodes", "csinode")},
    {KIND(storage, "CSIStorageCapacity", "csistoragecapacities", "csistoragecapacity"), .is_namespaced = true},
    {KIND(storage, "StorageClass", "storageclasses", "storageclass")},
    {KIND(storage, "VolumeAttachment", "volumeattachments", "volumeattachment")},
};
/* clang-format on */

const struct dv_kind *dv_empty_kinds(size_t *n)
{
    *n = DV_COUNT(kinds);
    return kinds;
}
