/* claim.h - the claims of a node's pods, as values: who uses them, what drivers prepared for them,
 * what is under way; the drivers themselves; the health of their devices. All that is decided about
 * them, and nothing that has an effect: claim_manager.h puts it on the loop.
 *
 *     WANTED --saved--> PREPARING --answered--> PREPARED
 *        |               |     ^ <--new boot--     |
 *        '------.--------'-----|-------------------'
 *               |  no pod      |  one wants it again
 *               v  wants it    |
 *          UNPREPARING --------'
 *               '--answered--> gone
 *
 * A record is written before its driver is called, and again before anyone is told what the driver
 * answered: so a crash at any instant leaves one that says what to do next. */
#ifndef DV_CLAIM_H
#define DV_CLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/calendar.h"
#include "base/defs.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"

struct dv_api_container;
struct dv_api_pod;
struct dv_api_resource_claim;
struct dv_api_resource_status;
struct dv_arena;
struct dv_buf;
struct dv_claim_state;
struct dv_err;
struct dv_row_change;

/* ---- records ---- */

enum dv_claim_phase {
    /* a pod wants it; no driver was called, since that is not on the disk yet */
    DV_CLAIM_WANTED,
    DV_CLAIM_PREPARING, /* drivers may have been called */
    DV_CLAIM_PREPARED,
    DV_CLAIM_UNPREPARING, /* drivers may have been called; no pod uses it any more */
    DV_CLAIM_GONE,        /* nobody sees it: a claim that is gone has no record */
};
const char *dv_claim_phase_name(enum dv_claim_phase phase); /* "preparing" */

/* One device that a driver prepared. A list that is NULL and one that is empty mean the same; they
 * differ in the kubelet's state file. */
struct dv_claim_device {
    dv_str pool;
    dv_str name;
    dv_str share_id;        /* p is NULL: it is not shared */
    const dv_str *requests; /* none: it is for all */
    size_t n_requests;
    const dv_str *cdi_ids;
    size_t n_cdi_ids;
};

struct dv_claim_driver {
    dv_str name;
    dv_str handle; /* what services before 1.31 are handed with the claim: claim_handle.c */
    const struct dv_claim_device *devices; /* NULL: none were told */
    size_t n_devices;
};

/* A claim as it is written to the store. */
struct dv_claim_record {
    dv_str namespace;
    dv_str name;
    dv_str uid;
    const dv_str *pods; /* uids, sorted */
    size_t n_pods;
    const struct dv_claim_driver *drivers; /* by name */
    size_t n_drivers;
    enum dv_claim_phase phase; /* not in the kubelet's file, nor what follows */
    dv_str boot_id;            /* in which it was prepared */
};

/* A claim, to be read. The state owns it; it is valid until that next changes. */
struct dv_claim {
    struct dv_claim_record record; /* `pods` and `drivers` are complete, `boot_id` too */
    bool is_left_over;             /* found unfinished at the start, and not finished yet */
    size_t n_holds;                /* operations that hold it: dv_claim_begin_hold */
    char *error;                   /* why the last calls failed; NULL: they did not */
    /* after chores have failed: a pod that asks has pauses of its own */
    struct dv_claim_pause {
        bool is_prepare;     /* preparing is what failed, else unpreparing */
        uint64_t until_ms;   /* no chore asks its drivers before this, */
        uint64_t next_ms;    /* nor for so long after the next failure, */
        uint64_t epoch;      /* unless they have come back (dv_claim_epoch), */
        uint64_t wake_at_ms; /* and then not before this: they may come back to fail again */
        uint64_t wake_ms;
    } pause;
};

/* ---- the state ---- */

struct dv_claim_opts {
    dv_str boot_id; /* of the kernel; what was prepared under another is not prepared */
    bool is_strict; /* as the reference: what was prepared counts until a restart only */
};

struct dv_claim_state *dv_claim_state_new(const struct dv_claim_opts *opts);
void dv_claim_state_free(struct dv_claim_state *state); /* NULL is fine */

size_t dv_claim_count(const struct dv_claim_state *state);
/* The claim of that name; NULL when there is none. */
struct dv_claim *dv_claim_find(const struct dv_claim_state *state, dv_str namespace, dv_str name);
/* The next claim at or after *at, by age; NULL at the end. Start with 0. */
struct dv_claim *dv_claim_next(const struct dv_claim_state *state, size_t *at);
/* All that a pod uses, in the order in which it came to use them; in `arena`. */
size_t dv_claim_of_pod(const struct dv_claim_state *state, dv_str pod_uid, struct dv_arena *arena,
                       struct dv_claim ***claims);
/* The kubelet's PodMightNeedToUnprepareResources: such a pod must not be reported as finished. */
bool dv_claim_pod_has_any(const struct dv_claim_state *state, dv_str pod_uid);
/* The uids of all pods that use a claim; in `arena`. */
size_t dv_claim_pods(const struct dv_claim_state *state, struct dv_arena *arena, dv_str **uids);

/* Enters that the pod uses the claim, and makes a record for it if there is none.
 * DV_FAILED_PRECONDITION: another claim of that name has a record. DV_ABORTED: it is being
 * unprepared. */
DV_CHECKED bool dv_claim_attach(struct dv_claim_state *state, dv_str pod_uid,
                                const struct dv_api_resource_claim *object, struct dv_claim **claim,
                                struct dv_err *err);
/* Whether dv_claim_attach would change nothing. */
bool dv_claim_is_attached(const struct dv_claim *claim, dv_str pod_uid);
/* Enters that the pod does not use the claim any more, which another pod does. */
void dv_claim_detach(struct dv_claim_state *state, struct dv_claim *claim, dv_str pod_uid);

/* What can happen to a claim. An event that its phase does not have is refused. */
enum dv_claim_event {
    DV_CLAIM_ON_SAVED,      /* the record is on the disk, so drivers may be called */
    DV_CLAIM_ON_WANTED,     /* a pod wants it again, after its unpreparing has failed */
    DV_CLAIM_ON_PREPARED,   /* all drivers have prepared it */
    DV_CLAIM_ON_UNWANTED,   /* its last pod does not want it any more */
    DV_CLAIM_ON_UNPREPARED, /* all drivers have unprepared it: its record and its memory are gone */
    DV_CLAIM_ON_FAILED,     /* a driver has refused, or not answered */
    DV_CLAIM_ON_STALE,      /* the machine was booted after it was prepared */
};
/* Applies the event. DV_FAILED_PRECONDITION: the claim's phase does not have it. */
DV_CHECKED bool dv_claim_handle(struct dv_claim_state *state, struct dv_claim *claim,
                                enum dv_claim_event event, struct dv_err *err);

/* An operation holds the claim from before it writes that drivers are about to be called until it
 * has written what they answered, and not only during the calls. Meanwhile the claim stays and is
 * not unprepared by others; until it is prepared, one operation at a time holds it. */
void dv_claim_begin_hold(struct dv_claim *claim);
void dv_claim_end_hold(struct dv_claim *claim);
/* Notes how the last calls ended; err: NULL when all went well. */
void dv_claim_set_error(struct dv_claim *claim, const struct dv_err *err);
/* The list of those who wait until no operation holds the claim: links, for the caller's own
 * use. */
struct dv_list *dv_claim_waiters(struct dv_claim *claim);

/* Prepared claims, for dra_resource_claims_in_use: in all, and of the next driver at or after *at,
 * by name; false at the end. Start with 0. */
size_t dv_claim_n_prepared(const struct dv_claim_state *state);
size_t dv_claim_drivers_in_use(const struct dv_claim_state *state, struct dv_arena *arena,
                               dv_str **names, size_t **counts);

/* ---- what has changed, for a store ---- */

/* Takes the rows that have changed since the last time, in `arena`. */
size_t dv_claim_take_changes(struct dv_claim_state *state, struct dv_arena *arena,
                             const struct dv_row_change **changes);
/* Marks all rows as changed, so that the next take has all of them. */
void dv_claim_rewrite(struct dv_claim_state *state);
/* Loads a row of the store. DV_DATA_LOSS: it is damaged. DV_UNIMPLEMENTED: a later version wrote
 * it. */
DV_CHECKED bool dv_claim_load(struct dv_claim_state *state, dv_str key, dv_str value,
                              struct dv_err *err);
/* Encodes one record as a row, and decodes it; `arena` takes what does not stay in the bytes. */
void dv_claim_record_encode(const struct dv_claim_record *record, struct dv_buf *key,
                            struct dv_buf *value);
DV_CHECKED bool dv_claim_record_decode(dv_str key, dv_str value, struct dv_arena *arena,
                                       struct dv_claim_record *record, struct dv_err *err);

/* ---- the kubelet's dra_manager_state ---- */

struct dv_claim_checkpoint {
    const struct dv_claim_record *records; /* NULL: null */
    size_t n_records;
};

enum dv_claim_verdict {
    DV_CLAIM_FILE_OK,
    DV_CLAIM_FILE_CORRUPT, /* its checksum does not match */
    DV_CLAIM_FILE_JSON_SYNTAX,
    DV_CLAIM_FILE_JSON_TYPE,
    DV_CLAIM_FILE_OTHER, /* dra_health_state: a time that is none */
};

/* Prints the text inside the file, and the whole file with its checksum. Pods and drivers must be
 * sorted. */
void dv_claim_checkpoint_text(const struct dv_claim_checkpoint *checkpoint, struct dv_buf *buf);
uint32_t dv_claim_checkpoint_sum(dv_str text);
void dv_claim_checkpoint_encode(const struct dv_claim_checkpoint *checkpoint, struct dv_buf *buf);
/* Reads the file as the reference does; in `arena`. When it has two records for one claim both are
 * there, and the last one counts. `err` is set unless the verdict is DV_CLAIM_FILE_OK. */
enum dv_claim_verdict dv_claim_checkpoint_decode(dv_str bytes, struct dv_arena *arena,
                                                 struct dv_claim_checkpoint *checkpoint,
                                                 struct dv_err *err);
struct dv_claim_old_form {
    const char *name;  /* of the releases that wrote it; NULL: it is none of them */
    bool is_unchecked; /* it has structured handles, with which no checksum can be computed here */
};
/* Reads the forms of 1.27 to 1.30, which the reference of today calls corrupted; `form` is set also
 * when the file is damaged. What was prepared is one device without a name for each driver.
 * DV_DATA_LOSS: its checksum does not match. */
DV_CHECKED bool dv_claim_checkpoint_decode_old(dv_str bytes, struct dv_arena *arena,
                                               struct dv_claim_checkpoint *checkpoint,
                                               struct dv_claim_old_form *form, struct dv_err *err);
/* Takes all claims as they are; borrowed from the state and in `arena`. */
void dv_claim_checkpoint_take(const struct dv_claim_state *state, struct dv_arena *arena,
                              struct dv_claim_checkpoint *checkpoint);
/* Makes a record of each, left over as after a restart (what is read is not prepared). Those
 * that are known already stay as they are; one whose name no API object has is left out. Returns
 * how many are new. */
size_t dv_claim_checkpoint_apply(struct dv_claim_state *state,
                                 const struct dv_claim_checkpoint *checkpoint);

/* ---- what pods say about their claims ---- */

struct dv_claim_ref {
    dv_str pod_claim; /* its name in the pod's list; empty: that for extended resources */
    dv_str name;      /* of the ResourceClaim, in the pod's namespace */
    bool needs_owner; /* made for the pod: it must be the pod's */
};
/* Lists all claims of a pod: in the order of its list, then that for extended resources; in
 * `arena`. */
DV_CHECKED bool dv_claim_refs(const struct dv_api_pod *pod, struct dv_arena *arena,
                              struct dv_claim_ref **refs, size_t *n_refs, struct dv_err *err);
/* Whether the pod may use the object (owner, reservation, allocation). `takes_groups`: also
 * through its group (the gate DRAWorkloadResourceClaims). */
DV_CHECKED bool dv_claim_check(const struct dv_api_pod *pod, const struct dv_claim_ref *ref,
                               const struct dv_api_resource_claim *object, bool takes_groups,
                               struct dv_err *err);

/* A pod's lists by name. A pod may have hundreds of containers and tens of thousands of claims: who
 * asks for its containers makes this once. */
struct dv_claim_lookup {
    const struct dv_api_pod *pod; /* borrowed */
    struct dv_map entries;        /* the pod's claims, by their names in its list */
    struct dv_map statuses;       /* what its status says of them, by the same names */
    struct dv_map extended;       /* what it says of extended resources, by container */
    struct dv_arena *arena;       /* of `extended`; NULL: it is empty */
};
void dv_claim_lookup_init(struct dv_claim_lookup *lookup, const struct dv_api_pod *pod);
void dv_claim_lookup_fini(struct dv_claim_lookup *lookup);

/* A CDI name for a container, and where it comes from. */
struct dv_claim_cdi_name {
    dv_str id; /* "vendor.com/gpu=0" */
    dv_str claim;
    dv_str driver;
    dv_str pool;
    dv_str device;
};
/* The names of a container's devices, as often as it asks for them: by claim, by driver, and in the
 * driver's order; texts are the state's. */
DV_CHECKED bool dv_claim_cdi_names(const struct dv_claim_state *state,
                                   const struct dv_claim_lookup *pod,
                                   const struct dv_api_container *container, struct dv_arena *arena,
                                   struct dv_claim_cdi_name **names, size_t *n_names,
                                   struct dv_err *err);
/* Lists the claims of a container for PodResources; the state owns them. */
DV_CHECKED bool dv_claim_of_container(const struct dv_claim_state *state,
                                      const struct dv_claim_lookup *pod,
                                      const struct dv_api_container *container,
                                      struct dv_arena *arena, const struct dv_claim ***claims,
                                      size_t *n_claims, struct dv_err *err);

/* ---- drivers ---- */

enum dv_dra_service {
    DV_DRA_V1,
    DV_DRA_V1BETA1,
    DV_DRA_V1ALPHA3, /* two generations of 1.28 to 1.33, told apart by their answers */
    DV_DRA_V1ALPHA2, /* 1.27: a call for each claim */
    DV_DRA_V1ALPHA1, /* 1.26: likewise */
    DV_N_DRA_SERVICES,
};
const char *dv_dra_service_name(enum dv_dra_service service); /* "v1beta1.DRAPlugin" */
const char *dv_dra_prepare_method(enum dv_dra_service service);
const char *dv_dra_unprepare_method(enum dv_dra_service service);
/* The service to try next when a driver does not know this one; DV_N_DRA_SERVICES: none is left. */
enum dv_dra_service dv_dra_older(enum dv_dra_service service);

enum dv_dra_health {
    DV_DRA_HEALTH_NONE,
    DV_DRA_HEALTH_V1,
    DV_DRA_HEALTH_V1ALPHA1,
};
const char *dv_dra_health_method(enum dv_dra_health health); /* NULL for none */
/* "v1.DRAResourceHealth"; empty for none */
const char *dv_dra_health_service(enum dv_dra_health health);

/* Chooses the service to use with a driver that lists these versions, and that for health.
 * Strictly, only v1 and v1beta1 are taken. `text` gets the whole text of an error, which may be too
 * long for `err`. */
DV_CHECKED bool dv_dra_choose_service(dv_str driver, dv_str endpoint, const dv_str *versions,
                                      size_t n_versions, bool is_strict,
                                      enum dv_dra_service *service, struct dv_buf *text,
                                      struct dv_err *err);
enum dv_dra_health dv_dra_choose_health(const dv_str *versions, size_t n_versions);

/* One socket that a driver serves on; embedded in what holds its connection. */
struct dv_dra_instance {
    dv_str driver; /* the embedder's, like the endpoint */
    dv_str endpoint;
    enum dv_dra_service service;
    enum dv_dra_health health;
    bool is_connected;
    uint64_t epoch; /* another one whenever it is connected */
    struct dv_link link;
};

/* What is to be done about the ResourceSlices of a driver. */
enum dv_dra_wipe {
    DV_DRA_WIPE_KEEP,   /* leave the plan as it is */
    DV_DRA_WIPE_CANCEL, /* the driver serves: its slices stay */
    DV_DRA_WIPE_PLAN,   /* the driver does not serve: its slices are deleted after a while */
};

struct dv_dra_drivers;
struct dv_dra_drivers *dv_dra_drivers_new(void);
void dv_dra_drivers_free(struct dv_dra_drivers *drivers); /* of no instance; NULL is fine */
/* Keeps the instance. DV_ALREADY_EXISTS: the driver has one there. */
DV_CHECKED bool dv_dra_add(struct dv_dra_drivers *drivers, struct dv_dra_instance *instance,
                           struct dv_err *err);
void dv_dra_remove(struct dv_dra_drivers *drivers, struct dv_dra_instance *instance);
/* The instance of the driver on that socket; NULL when there is none. */
struct dv_dra_instance *dv_dra_find(const struct dv_dra_drivers *drivers, dv_str driver,
                                    dv_str endpoint);
/* The instance to call: the newest that is connected, or else the newest. DV_NOT_FOUND: the driver
 * has none. */
struct dv_dra_instance *dv_dra_choose(const struct dv_dra_drivers *drivers, dv_str driver,
                                      struct dv_err *err);
/* The name of the next driver that has an instance; false at the end. Start with 0. */
bool dv_dra_next_name(const struct dv_dra_drivers *drivers, size_t *at, dv_str *name);
bool dv_dra_is_known(const struct dv_dra_drivers *drivers, dv_str driver);
bool dv_dra_is_usable(const struct dv_dra_drivers *drivers, dv_str driver);
/* To be called after every change of a driver's instances or their connections. */
enum dv_dra_wipe dv_dra_evaluate(const struct dv_dra_drivers *drivers, dv_str driver,
                                 bool has_plan);

/* ---- calls ---- */

/* What a driver has said about one claim. */
struct dv_claim_answer {
    dv_str uid;
    dv_str error; /* empty: it is done */
    const struct dv_claim_device *devices;
    size_t n_devices;
};

/* What is kept of a driver's answer for one claim: 32 devices are the API's limit, so this is far
 * more than any that is meant well, and a claim of as many drivers still fits a row of the store.
 */
#define DV_CLAIM_ANSWER_BYTES_MAX (256u * 1024u)

/* Encodes the handle of a claim for one driver: the fields that requests of v1alpha2 and of
 * v1alpha3 before 1.31 have for it. Then drivers got what their controllers had written, or
 * from 1.30 on what the scheduler had chosen; here both are made from the allocation, and
 * parameters are the driver's opaque configuration. */
void dv_claim_handle_encode(const struct dv_api_resource_claim *object, dv_str driver, dv_str node,
                            struct dv_buf *buf);
/* Keeps a copy of the driver's handle with the claim: what prepares is unprepared with the same. */
void dv_claim_set_handle(struct dv_claim_state *state, struct dv_claim *claim, dv_str driver,
                         dv_str handle);

/* Encodes a request for these claims. v1alpha2 and v1alpha1 take one claim. Services before 1.31
 * get its handle, but for an unprepare of v1alpha1, which wants the CDI names back that it answered
 * with. */
void dv_claim_request_encode(enum dv_dra_service service, bool is_prepare,
                             struct dv_claim *const *claims, size_t n_claims, dv_str driver,
                             struct dv_buf *buf);
/* Decodes one answer for each claim that the response names, in its order; texts stay in
 * `response`. The response of v1alpha2 and v1alpha1 is that of the one claim `uid`. */
DV_CHECKED bool dv_claim_response_decode(enum dv_dra_service service, bool is_prepare, dv_str uid,
                                         dv_str response, struct dv_arena *arena,
                                         struct dv_claim_answer **answers, size_t *n_answers,
                                         struct dv_err *err);
/* Compares the answers with the claims that were asked for, and keeps the devices. The first thing
 * that is wrong is the error; answers before it are kept. Unless strict, a CDI name has to be well
 * formed. */
DV_CHECKED bool dv_claim_apply(struct dv_claim_state *state, bool is_prepare, dv_str driver,
                               struct dv_claim *const *claims, size_t n_claims,
                               const struct dv_claim_answer *answers, size_t n_answers,
                               struct dv_err *err);

/* ---- devices that drivers of 1.30 offer ---- */

/* The longest message of NodeListAndWatchResources: the kubelets of 1.30 took no larger one. */
#define DV_CLAIM_OFFER_BYTES_MAX (4u << 20)
/* The most devices of one offer: with all the attributes that they may have they hold the loop for
 * about 10 ms. */
#define DV_CLAIM_OFFER_DEVICES_MAX 512u
/* How many of the things that are left out of an offer are named. */
#define DV_CLAIM_OFFER_LEFT_OUT_MAX 8u

struct dv_claim_offer {
    struct dv_api_device *devices; /* as today's API takes them */
    size_t n_devices;
    const dv_str *left_out; /* "device \"a.b\": its name is not ...": the first of them */
    size_t n_named;
    size_t n_left_out; /* devices and attributes */
};

/* Decodes one NodeListAndWatchResourcesResponse of v1alpha3; texts stay in `message`.
 * DV_INVALID_ARGUMENT: it is none. DV_RESOURCE_EXHAUSTED: it has more than is taken. */
DV_CHECKED bool dv_claim_offer_decode(dv_str message, struct dv_arena *arena,
                                      struct dv_claim_offer *offer, struct dv_err *err);

/* ---- health of devices ---- */

enum dv_claim_health {
    DV_CLAIM_UNKNOWN,
    DV_CLAIM_HEALTHY,
    DV_CLAIM_UNHEALTHY,
};
const char *dv_claim_health_name(enum dv_claim_health health); /* "Unhealthy" */

#define DV_CLAIM_HEALTH_TIMEOUT_NS (UINT64_C(30) * 1000 * 1000 * 1000)
#define DV_CLAIM_HEALTH_TEXT_MAX 1024u
/* The number of devices of one driver whose health is kept; others are ignored. */
#define DV_CLAIM_HEALTH_DEVICES_MAX 16384u

/* The length of a pool's and a device's name together, so that the key fits the store whatever
 * bytes it has. The API's own limits are lower. */
#define DV_CLAIM_HEALTH_NAME_MAX 512u

struct dv_claim_device_health {
    dv_str pool;
    dv_str device;
    enum dv_claim_health health;
    uint64_t timeout_ns;
    dv_str message;
};

/* Decodes one NodeWatchResourcesResponse; texts stay in `message`, cut where they are too long. */
DV_CHECKED bool dv_claim_health_decode(dv_str message, struct dv_arena *arena,
                                       struct dv_claim_device_health **devices, size_t *n_devices,
                                       struct dv_err *err);

struct dv_claim_health_diff {
    size_t n_changes;
    size_t n_ignored;   /* over the limit */
    const dv_str *pods; /* that hold a device whose health has changed; the state's */
    size_t n_pods;
};
/* Replaces what is known of a driver's devices by what it says now. */
void dv_claim_health_apply(struct dv_claim_state *state, dv_str driver,
                           const struct dv_claim_device_health *devices, size_t n_devices,
                           uint64_t now_wall_ns, struct dv_arena *arena,
                           struct dv_claim_health_diff *diff);
/* Forgets the health of the driver's devices. */
void dv_claim_health_clear(struct dv_claim_state *state, dv_str driver, struct dv_arena *arena,
                           struct dv_claim_health_diff *diff);
/* The health that is known now; the state owns *message (may be NULL). */
enum dv_claim_health dv_claim_health_get(const struct dv_claim_state *state, dv_str driver,
                                         dv_str pool, dv_str device, uint64_t now_wall_ns,
                                         dv_str *message);

struct dv_claim_status_options {
    uint64_t now_wall_ns;
    bool without_messages; /* the gate ResourceHealthStatusMessage is off */
};
/* Makes allocatedResourcesStatus of a container: the entries of `known`, with those of its claims
 * added or replaced. The list is in `arena`; its texts are borrowed from the arguments. */
void dv_claim_container_status(const struct dv_claim_state *state,
                               const struct dv_claim_lookup *pod,
                               const struct dv_api_container *container,
                               const struct dv_api_resource_status *known, size_t n_known,
                               const struct dv_claim_status_options *options,
                               struct dv_arena *arena, struct dv_api_resource_status **entries,
                               size_t *n_entries);

/* ---- the kubelet's dra_health_state ---- */

struct dv_claim_health_entry {
    dv_str key; /* "<pool>/<device>" */
    dv_str pool;
    dv_str device;
    dv_str health; /* any text, when read */
    struct dv_rfc3339 updated;
    int64_t timeout_ns;
    dv_str message;
};

struct dv_claim_health_of_driver {
    dv_str driver;
    const struct dv_claim_health_entry *entries; /* NULL: null; sorted by key */
    size_t n_entries;
};

struct dv_claim_health_file {
    const struct dv_claim_health_of_driver *drivers; /* NULL: null; sorted by name */
    size_t n_drivers;
};

void dv_claim_health_encode(const struct dv_claim_health_file *file, struct dv_buf *buf);
/* Reads the file as the reference does: entries that came before an error are there, whatever the
 * verdict. */
enum dv_claim_verdict dv_claim_health_file_decode(dv_str bytes, struct dv_arena *arena,
                                                  struct dv_claim_health_file *file,
                                                  struct dv_err *err);
void dv_claim_health_take(const struct dv_claim_state *state, struct dv_arena *arena,
                          struct dv_claim_health_file *file);
/* Puts the entries that fit the store into the state. Returns the number of devices. */
size_t dv_claim_health_restore(struct dv_claim_state *state,
                               const struct dv_claim_health_file *file);

#endif
