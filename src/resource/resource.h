/* resource.h - the API's kinds and objects: typed structs, driven by field tables.
 *
 * `struct dv_api_pod` and its like, which are made from schema/, hold an object of the newest
 * version; older versions are other tables over the same structs, so that reading an object in one
 * version and printing it in another is the conversion. Objects that are kept are `struct
 * dv_object`: immutable, counted, in one block of memory. */
#ifndef DV_RESOURCE_H
#define DV_RESOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/defs.h"
#include "base/str.h"
#include "resource/field.h"  /* IWYU pragma: export */
#include "resource/types.h"  /* IWYU pragma: export */
#include "resource/values.h" /* IWYU pragma: export */
/* IWYU pragma: no_include "types.h" */

/* The release of Kubernetes whose API and kubelet davit stands in for. */
#define DV_KUBERNETES_VERSION "v1.36.4"

struct dv_arena;
struct dv_buf;
struct dv_custom;
struct dv_err;
struct dv_json;
struct dv_object;
struct dv_object_pool;

/* ---- kinds ---- */

enum dv_kind_id {
    DV_KIND_POD,
    DV_KIND_NODE,
    DV_KIND_NAMESPACE,
    DV_KIND_EVENT,
    DV_KIND_SERVICE_ACCOUNT,
    DV_KIND_SECRET,
    DV_KIND_CONFIG_MAP,
    DV_KIND_LEASE,
    DV_KIND_CLAIM,
    DV_KIND_TEMPLATE,
    DV_KIND_SLICE,
    DV_KIND_CLASS,
    DV_KIND_TAINT_RULE,
    DV_KIND_RUNTIME_CLASS,
    DV_KIND_PRIORITY_CLASS,
    DV_KIND_RESOURCE_QUOTA,
    DV_KIND_SERVICE,
    DV_KIND_ENDPOINTS,
    DV_KIND_ENDPOINT_SLICE,
    DV_KIND_ROLE,
    DV_KIND_CLUSTER_ROLE,
    DV_KIND_ROLE_BINDING,
    DV_KIND_CLUSTER_ROLE_BINDING,
    DV_KIND_DAEMON_SET,
    DV_KIND_CONTROLLER_REVISION,
    DV_KIND_VALIDATING_POLICY,
    DV_KIND_VALIDATING_POLICY_BINDING,
    DV_KIND_DEPLOYMENT,
    DV_KIND_REPLICA_SET,
    DV_KIND_JOB,
    DV_KIND_CUSTOM_DEFINITION,
    DV_KIND_VALIDATING_WEBHOOKS,
    DV_KIND_MUTATING_WEBHOOKS,
    DV_KIND_DISRUPTION_BUDGET,
    DV_N_KINDS,
    /* All kinds that definitions make (custom.h). They are not among those of dv_kind(). */
    DV_KIND_CUSTOM,
};

/* A version that a kind is served in. Events are in two groups. */
struct dv_api_version {
    dv_str group;   /* "" is the core group */
    dv_str version; /* "v1beta1" */
    const struct dv_message *message;
};

/* What a pod's preemptionPolicy is unless it or its class says otherwise. */
#define DV_PREEMPT_LOWER_PRIORITY "PreemptLowerPriority"
/* On DaemonSets: how often the template was changed; their pods have it as the label. */
#define DV_TEMPLATE_GENERATION_ANNOTATION "deprecated.daemonset.template.generation"
#define DV_TEMPLATE_GENERATION_LABEL "pod-template-generation"
/* The group of NetworkPolicies and Ingresses, which are not taken. */
#define DV_NETWORKING_GROUP "networking.k8s.io"
/* The group of Jobs. */
#define DV_BATCH_GROUP "batch"
/* Keeps a pod of a Job until it has been counted. */
#define DV_JOB_FINALIZER "batch.kubernetes.io/job-tracking"
/* What pods of a Job and its template have as labels, by a name and by the one that it had
 * before. */
#define DV_JOB_UID_LABEL "batch.kubernetes.io/controller-uid"
#define DV_JOB_NAME_LABEL "batch.kubernetes.io/job-name"
#define DV_OLD_JOB_UID_LABEL "controller-uid"
#define DV_OLD_JOB_NAME_LABEL "job-name"
/* The group of admission policies and webhooks. */
#define DV_ADMISSION_GROUP "admissionregistration.k8s.io"
/* The group of roles and bindings. */
#define DV_RBAC_GROUP "rbac.authorization.k8s.io"

struct dv_kind {
    enum dv_kind_id id;
    dv_str name;     /* "ResourceClaim" */
    dv_str plural;   /* "resourceclaims" */
    dv_str singular; /* "resourceclaim" */
    const dv_str *short_names;
    size_t n_short_names;
    const struct dv_api_version *versions; /* the preferred first; objects are stored in that one */
    size_t n_versions;
    bool is_namespaced;
    bool has_status;     /* a status subresource */
    bool has_generation; /* metadata.generation counts changes of the spec */
    bool is_in_all;      /* `kubectl get all` shows it */
    bool has_scale;      /* a scale subresource */
    /* Of a DV_KIND_CUSTOM: the definition in force, for the loop's thread; NULL: it is gone. */
    struct dv_custom *custom;
};

const struct dv_kind *dv_kind(enum dv_kind_id id);
/* Finds a kind by its name; NULL when there is none, or not in that version. *version may
 * be NULL. */
const struct dv_kind *dv_kind_by_name(dv_str group, dv_str version, dv_str name,
                                      const struct dv_api_version **found);
const struct dv_kind *dv_kind_by_plural(dv_str group, dv_str version, dv_str plural,
                                        const struct dv_api_version **found);
/* "v1", "resource.k8s.io/v1" */
void dv_api_version_print(const struct dv_api_version *version, struct dv_buf *buf);
/* Splits "resource.k8s.io/v1" and "v1". */
void dv_api_version_split(dv_str api_version, dv_str *group, dv_str *version);

/* ---- reading and printing ---- */

/* What a decoder noticed that is no error by itself, in order: `unknown field "spec.x"`,
 * `duplicate field "spec.y"`. */
struct dv_decode_notes {
    dv_str *v;
    size_t n;
    size_t size;
};

enum dv_unknown {
    DV_UNKNOWN_KEEP, /* in the struct's `unknown`, printed again */
    DV_UNKNOWN_DROP,
    DV_UNKNOWN_BODY, /* kept at the root, without a note: the body of a custom object */
};

/* What decoding one object may take for its structs: far more than any object that is accepted
 * needs, and little enough for a body of 3 MiB that asks for as much as it can. */
#define DV_DECODE_BYTES_MAX (64u * 1024u * 1024u)

/* Reads a message from JSON into the zeroed struct `value`. null is absent. Texts stay where they
 * are in the document's memory. Notes (may be NULL) are made in `arena`.
 * apiVersion and kind at the top are left to the caller.
 * DV_INVALID_ARGUMENT with the path: a value that does not fit its field. DV_RESOURCE_EXHAUSTED:
 * over DV_DECODE_BYTES_MAX. */
DV_CHECKED bool dv_decode_json(const struct dv_message *message, const struct dv_json *doc,
                               enum dv_unknown unknown, struct dv_arena *arena, void *value,
                               struct dv_decode_notes *notes, struct dv_err *err);
/* Like dv_decode_json, from protobuf; `bytes` must live as long as the value. Unknown fields are
 * skipped. */
DV_CHECKED bool dv_decode_pb(const struct dv_message *message, dv_str bytes, struct dv_arena *arena,
                             void *value, struct dv_err *err);

/* Encodes as a document, and as text at once (a line without blanks). apiVersion and kind come
 * first when `version` and `kind` are given. */
struct dv_json *dv_encode_json(const struct dv_message *message, const void *value,
                               const struct dv_api_version *version, dv_str kind,
                               struct dv_arena *arena);
void dv_encode_json_text(const struct dv_message *message, const void *value,
                         const struct dv_api_version *version, dv_str kind, struct dv_buf *buf);
void dv_encode_pb(const struct dv_message *message, const void *value, struct dv_buf *buf);

/* Encodes an object for the store: small, and quickly decoded. Rows that older versions wrote, as
 * JSON, are decoded as well. Into a zeroed struct; `row` must live as long as the value. */
void dv_encode_row(const struct dv_object *object, struct dv_buf *buf);
DV_CHECKED bool dv_decode_row(const struct dv_kind *kind, dv_str row, struct dv_arena *arena,
                              void *value, struct dv_err *err);
/* The object of a row: decoded into `scratch`, and copied once. */
struct dv_object *dv_object_from_row(const struct dv_kind *kind, dv_str row,
                                     struct dv_arena *scratch, struct dv_err *err);
/* Packs the FieldsV1 of managedFields, which objects are kept with: whoever prints an object, or
 * asks who owns its fields, gets the text. */
void dv_managed_fields_pack(const struct dv_kind *kind, struct dv_api_managed_fields_entry *entries,
                            size_t n, struct dv_arena *arena);
/* Sets the version in a row that was made before it was known. */
void dv_row_set_version(struct dv_buf *row, uint64_t version);

/* The protobuf envelope of Kubernetes: "k8s\0" and a message with apiVersion, kind, object. */
struct dv_pb_envelope {
    dv_str api_version;
    dv_str kind;
    dv_str object;
};
DV_CHECKED bool dv_pb_envelope_decode(dv_str body, struct dv_pb_envelope *envelope,
                                      struct dv_err *err);
void dv_pb_envelope_encode(const struct dv_pb_envelope *envelope, struct dv_buf *buf);
/* The same for an object that is made in parts: what comes before the length of the object, the
 * length, and what follows the object. */
void dv_pb_envelope_begin(dv_str api_version, dv_str kind, struct dv_buf *buf);
void dv_pb_envelope_add_length(size_t n_object, struct dv_buf *buf);
void dv_pb_envelope_end(struct dv_buf *buf);

/* "2006-01-02T15:04:05Z", with any offset and fraction; prints UTC. */
DV_CHECKED bool dv_api_time_parse(dv_str text, struct dv_time *time, struct dv_err *err);
void dv_api_time_print(struct dv_time time, bool with_micros, struct dv_buf *buf);
bool dv_api_time_is_in_range(struct dv_time time); /* of the years 0 to 9999 */
/* The time of a clock that counts nanoseconds since 1970; most fields of the API take the seconds
 * of it alone. */
struct dv_time dv_api_time_from_ns(uint64_t wall_ns);
struct dv_time dv_api_seconds_from_ns(uint64_t wall_ns);
/* The time so many seconds later, or earlier when negative; never beyond the years 0 to 9999,
 * because a time beyond them cannot be read again once it is printed. */
struct dv_time dv_api_time_add(struct dv_time time, int64_t seconds);
/* Rounds a time to what is printed of it: whole seconds, or microseconds. Go's zero time is
 * none. */
struct dv_time dv_api_time_round(struct dv_time time, bool with_micros);

/* Whether two values mean the same: absent and empty lists and maps are equal, quantities are
 * compared by number, times by instant. An optional text that is empty is not absent. */
bool dv_message_eq(const struct dv_message *message, const void *a, const void *b);
/* Makes a deep copy in `copy`, with all that it refers to. */
void dv_message_copy(const struct dv_message *message, const void *value, struct dv_arena *arena,
                     void *copy);

/* Fills in the API's defaults; `now` is for timeAdded of taints. They depend on `version`: v1beta1
 * leaves more out. */
void dv_default(const struct dv_kind *kind, const struct dv_api_version *version, void *value,
                struct dv_time now, struct dv_arena *arena);

/* ---- objects ---- */

/* An object, immutable and counted; references are taken and dropped on one thread. Any thread may
 * make one, and read one that is kept alive meanwhile. One in a pool (object_pool.h) is kept as its
 * row while nobody has a reference by dv_object_ref: `meta` and `value` are NULL then. */
struct dv_object {
    const struct dv_kind *kind;
    struct dv_api_object_meta *meta; /* of `value` */
    void *value;                     /* struct dv_api_pod and so on, by `kind` */
    uint64_t version;                /* metadata.resourceVersion as a number; 0: none */
    struct dv_object_pool *pool;     /* NULL: its value is always there */
    uint32_t size_bytes;             /* with its value */
    uint32_t n_refs;                 /* of all kinds */
    uint32_t n_uses;                 /* those of dv_object_ref */
    uint32_t n_row;                  /* bytes of the row, behind the struct; 0: it has none */
};

/* Copies `value` and all it refers to into one block. Lists and maps that are empty become absent,
 * as in the reference, which stores objects in an encoding that cannot tell. */
struct dv_object *dv_object_new(const struct dv_kind *kind, const void *value);
/* The memory that an object of this value would take. */
size_t dv_object_measure(const struct dv_kind *kind, const void *value);
/* Gives its version to an object that nobody else has yet, and that was made with DV_VERSION_ROOM
 * for one: large objects are made on a worker, before their version is known. */
#define DV_VERSION_ROOM DV_STR("00000000000000000000")
void dv_object_set_version(struct dv_object *object, uint64_t version);
/* Takes a reference with which the value is there. */
struct dv_object *dv_object_ref(struct dv_object *object);
void dv_object_unref(struct dv_object *object); /* NULL is fine */

/* ---- what values mean ---- */

/* Whether the pod has ended, well or not: none of its containers runs again. */
bool dv_pod_is_terminal(const struct dv_api_pod *pod);
/* Whether the condition Ready is true; `since` (may be NULL) gets from when. */
bool dv_pod_is_ready(const struct dv_api_pod *pod, struct dv_time *since);
/* A number, or a share of `total`; what is neither counts as 0. */
int64_t dv_scaled(const struct dv_int_or_str *value, int64_t total, bool is_rounded_up);

bool dv_meta_has_finalizer(const struct dv_api_object_meta *meta, dv_str finalizer);
/* The owner that looks after the object; NULL: none does. */
const struct dv_api_owner_reference *dv_controller_of(const struct dv_api_object_meta *meta);

/* Keeps a claim with devices from being deleted. */
#define DV_CLAIM_FINALIZER "resource.kubernetes.io/delete-protection"
/* On claims that the scheduler makes for extended resources: "true". */
#define DV_CLAIM_EXTENDED_ANNOTATION "resource.kubernetes.io/extended-resource-claim"
/* The API's limit on who uses a claim at a time. */
#define DV_CLAIM_RESERVED_MAX 256u

bool dv_claim_is_reserved_for(const struct dv_api_resource_claim *claim, dv_str pod_uid);

/* Whether one toleration is enough for a taint: of a node, and of a device. */
bool dv_toleration_matches(const struct dv_api_toleration *toleration,
                           const struct dv_api_taint *taint);
bool dv_device_toleration_matches(const struct dv_api_device_toleration *toleration,
                                  const struct dv_api_device_taint *taint);

/* An alternative of a request in the form of a request that has none; it has no admin access. */
struct dv_api_exact_device_request
dv_alternative_as_request(const struct dv_api_device_sub_request *alternative);

/* The amount of that name, by bisection; NULL: there is none. */
const struct dv_quantity *dv_quantity_find(const struct dv_quantity_entry *entries, size_t n,
                                           dv_str key);
/* Finds an entry of a map of the API by its key; NULL when it is absent. */
const struct dv_str_entry *dv_entry_find(const struct dv_str_entry *entries, size_t n, dv_str key);

/* Sets an entry, in a new map in `arena`; keeps `key` and `value`. Does nothing when the entry has
 * that value already. */
void dv_entry_set(struct dv_str_entry **entries, size_t *n, dv_str key, dv_str value,
                  struct dv_arena *arena);

#endif
