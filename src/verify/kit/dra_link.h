/* dra_link.h - a DRA driver as a kubelet has it, and claims that are allocated to it. */
#ifndef DV_VERIFY_DRA_LINK_H
#define DV_VERIFY_DRA_LINK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "claim/claim.h"
#include "grpc/grpc.h"
#include "proto/dra_v1.pb-c.h"
#include "proto/health_v1.pb-c.h"

struct dv_child;
struct dv_driver_call;
struct dv_registration;
struct dv_trial;

struct dv_dra_link {
    struct dv_trial *trial;
    struct dv_child *process; /* NULL: it was running */
    const struct dv_registration *registration;
    struct dv_channel *channel;
    enum dv_dra_service service;
    dv_str miss; /* why no devices were found for a claim, the last time that there were none */
};

/* Opens the kubelet and the API, starts the driver, waits for its registration and its slices. */
struct dv_dra_link *dv_dra_link_begin(struct dv_trial *trial);
/* Like dv_dra_link_begin, for a driver that has registered; does not wait for slices. */
struct dv_dra_link *dv_dra_link_open(struct dv_trial *trial, struct dv_child *process,
                                     const struct dv_registration *registration);
void dv_dra_link_close(struct dv_dra_link *link);
/* Ends the driver by a signal, starts it again, and waits for its registration. */
struct dv_dra_link *dv_dra_link_restart(struct dv_dra_link *link, bool is_killed);
/* Waits until the driver has published a device; false when it does not in time. */
bool dv_dra_wait_slices(struct dv_trial *trial);

/* ---- claims ---- */

struct dv_test_claim {
    dv_str name;
    dv_str uid;
    const struct dv_api_allocation_result *allocation; /* NULL: not allocated */
};

enum dv_claim_shape {
    DV_CLAIM_PLAIN,       /* as --claim says, or one device */
    DV_CLAIM_ADMIN,       /* the same with admin access */
    DV_CLAIM_UNALLOCATED, /* as plain, without devices */
    DV_CLAIM_BAD,         /* as --bad-claim says */
    DV_CLAIM_TWO,         /* as plain, with its first request once more */
    DV_CLAIM_CONFIG,      /* as --claim says, which has parameters for the driver */
};

/* Makes a claim in the API and allocates it, by the scheduler's own rules. Skips the trial when
 * devices do not suffice. */
struct dv_test_claim *dv_claim_make(struct dv_dra_link *link, enum dv_claim_shape shape);
/* Like dv_claim_make; NULL when devices do not suffice. */
struct dv_test_claim *dv_claim_try(struct dv_dra_link *link, enum dv_claim_shape shape);
/* Makes a claim that was never in the API. */
struct dv_test_claim *dv_claim_invent(struct dv_dra_link *link);
/* Whether the claim was given the device of an answer. */
bool dv_claim_has_result(const struct dv_test_claim *claim, const DraV1__Device *device);

/* Breaks the trial when a file of --claim or --bad-claim cannot be used. */
void dv_claim_check_files(struct dv_trial *trial);
/* What a claim of the shape asks for, in the arena. Makes the classes that it needs; skips the
 * trial when the command line does not say enough. */
struct dv_api_resource_claim *dv_claim_wanted(struct dv_trial *trial, enum dv_claim_shape shape);

/* ---- calls ---- */

typedef DraV1__NodePrepareResourceResponse dv_prepared;

/* Starts NodePrepareResources for the claims; is_undo: NodeUnprepareResources. */
struct dv_driver_call *dv_dra_start(struct dv_dra_link *link, struct dv_test_claim *const *claims,
                                    size_t n_claims, bool is_undo);
/* What the finished call says about a claim; NULL: the call failed, or says nothing about it, or
 * its error; `err` says which. */
const dv_prepared *dv_dra_result(const struct dv_driver_call *call,
                                 const struct dv_test_claim *claim, struct dv_err *err);
bool dv_dra_undone(const struct dv_driver_call *call, const struct dv_test_claim *claim,
                   struct dv_err *err);
/* Prepares one; NULL: `err`. */
const dv_prepared *dv_dra_try_prepare(struct dv_dra_link *link, struct dv_test_claim *claim,
                                      struct dv_err *err);
bool dv_dra_try_unprepare(struct dv_dra_link *link, struct dv_test_claim *claim,
                          struct dv_err *err);
/* These fail the trial. */
const dv_prepared *dv_dra_prepare(struct dv_dra_link *link, struct dv_test_claim *claim);
void dv_dra_unprepare(struct dv_dra_link *link, struct dv_test_claim *claim);
/* Whether both answers give the same devices with the same CDI names, in any order. */
bool dv_prepared_is_same(const dv_prepared *a, const dv_prepared *b);
bool dv_prepared_has_cdi(const dv_prepared *prepared, const char *name);
size_t dv_prepared_n_cdi(const dv_prepared *prepared);
/* Fails the trial unless each CDI name of the answer resolves. */
void dv_dra_check_cdi(struct dv_dra_link *link, const dv_prepared *prepared, const char *when);

/* ---- health ---- */

struct dv_health_watch {
    struct dv_call call;
    struct dv_trial *trial;
    HealthV1__NodeWatchResourcesResponse *last;
    size_t n_lists;
    size_t n_bytes; /* of all lists */
    struct dv_err err;
    bool has_ended;
};

struct dv_health_watch *dv_health_start(struct dv_dra_link *link);
bool dv_health_wait(struct dv_health_watch *watch, size_t n);

#endif
