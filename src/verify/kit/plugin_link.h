/* plugin_link.h - a device plugin as a kubelet has it: its socket, its options, its list. */
#ifndef DV_VERIFY_PLUGIN_LINK_H
#define DV_VERIFY_PLUGIN_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "grpc/grpc.h"
#include "proto/deviceplugin_v1beta1.pb-c.h"

struct dv_driver_call;
struct dv_child;
struct dv_registration;
struct dv_trial;

/* A ListAndWatch. */
struct dv_list_watch {
    struct dv_call call;
    struct dv_trial *trial;
    size_t n_lists;
    size_t n_bytes;                        /* of all lists */
    DpV1beta1__ListAndWatchResponse *last; /* in the trial's arena; NULL: none came yet */
    struct dv_err err;                     /* of its end, or of a list that cannot be read */
    bool has_ended;
};

struct dv_plugin_link {
    struct dv_trial *trial;
    struct dv_child *process; /* NULL: it was running */
    const struct dv_registration *registration;
    struct dv_channel *channel;
    struct dv_list_watch *list;
    DpV1beta1__DevicePluginOptions *options;
};

/* Starts the plugin with a kubelet that is there already, waits for its registration, asks for its
 * options and its first list. Whatever of that fails, fails the trial. */
struct dv_plugin_link *dv_plugin_link_begin(struct dv_trial *trial);
/* Like dv_plugin_link_begin, for a plugin that has registered. */
struct dv_plugin_link *dv_plugin_link_open(struct dv_trial *trial, struct dv_child *process,
                                           const struct dv_registration *registration);
/* Closes the connection to it, as a kubelet that ends does. */
void dv_plugin_link_close(struct dv_plugin_link *link);

struct dv_list_watch *dv_list_start(struct dv_trial *trial, struct dv_channel *channel);
/* Waits until more than n lists came; false when none does in time, or the stream ends. */
bool dv_list_wait(struct dv_list_watch *list, size_t n, uint64_t timeout_ms);
/* Of the last list: how many there are, those that are healthy, and the ids of these, in its
 * order, in the trial's arena. */
size_t dv_list_n(const struct dv_list_watch *list);
size_t dv_list_healthy(const struct dv_list_watch *list, const char ***ids);
bool dv_list_has(const struct dv_list_watch *list, const char *id);

/* ---- calls; each fails the trial unless it is said to answer ---- */

/* Allocates these for one container. */
DpV1beta1__ContainerAllocateResponse *dv_plugin_allocate(struct dv_plugin_link *link,
                                                         const char **ids, size_t n_ids);
/* Starts it, for several at a time. */
struct dv_driver_call *dv_plugin_start_allocate(struct dv_plugin_link *link, const char **ids,
                                                size_t n_ids);
/* Several containers in one call. NULL: `err` says why. */
DpV1beta1__AllocateResponse *
dv_plugin_try_allocate(struct dv_plugin_link *link,
                       DpV1beta1__ContainerAllocateRequest **containers, size_t n_containers,
                       struct dv_err *err);
DpV1beta1__ContainerAllocateRequest *dv_plugin_container(struct dv_plugin_link *link,
                                                         const char **ids, size_t n_ids);
/* NULL: `err` says why. */
DpV1beta1__PreferredAllocationResponse *
dv_plugin_try_prefer(struct dv_plugin_link *link, const char **available, size_t n_available,
                     const char **must, size_t n_must, size_t size, struct dv_err *err);
bool dv_plugin_try_prestart(struct dv_plugin_link *link, const char **ids, size_t n_ids,
                            struct dv_err *err);
/* Fails the trial unless the plugin still answers: after what may have broken it. */
void dv_plugin_check_alive(struct dv_plugin_link *link, const char *after);

#endif
