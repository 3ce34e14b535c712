/* pod_life_record.h - one recorded life of a pod: what was done to it, and what was seen. */
#ifndef DV_GOLDEN_POD_LIFE_RECORD_H
#define DV_GOLDEN_POD_LIFE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "resource/resource.h"

struct dv_arena;
struct dv_json;

/* When the recorded pods were made, in seconds since 1970: what "<t+0>" stands for. */
#define LIFE_BASE_S INT64_C(1767225600)

struct record_action {
    uint64_t ms;
    dv_str verb;
    const struct dv_json *json;
};

struct record_status {
    uint64_t ms;
    dv_str type; /* "ADDED", "MODIFIED", "DELETED" */
    struct dv_api_pod_status status;
};

struct record_event {
    int64_t first_s; /* after the creation: whole seconds */
    bool is_warning;
    dv_str reason;
    dv_str message;
    dv_str field_path;
};

struct record_call {
    uint64_t ms;
    uint64_t duration_ms;
    dv_str method;
    dv_str container; /* "c" and the attempt, of an id "<container:c:0>" or of a creation */
    uint32_t attempt; /* of the sandbox, too */
    bool has_timeout;
    int64_t timeout_s;
    int64_t exit_code;
    bool has_failed;
    dv_str error;
    dv_str code; /* of the error */
    dv_str uid;
    dv_str command; /* of ExecSync: its words, joined by spaces */
    dv_str image;
};

struct record {
    dv_str id;
    struct dv_api_pod *pod; /* NULL: a static one, whose text is in its actions */
    struct record_action *actions;
    size_t n_actions;
    struct record_status *statuses;
    size_t n_statuses;
    struct record_event *events;
    size_t n_events;
    struct record_call *calls;
    size_t n_calls;
    uint64_t end_ms; /* of what was seen */
};

/* Reads a line of pods.jsonl, in `arena`. */
DV_CHECKED bool record_read(dv_str line, struct dv_arena *arena, struct record *record,
                            struct dv_err *err);

/* What the recording says of one instance of a container. */
struct record_end {
    bool is_known; /* it ended */
    bool is_own;   /* by itself, so long after its start; else when it was stopped */
    uint64_t after_ms;
    int32_t exit_code;
    dv_str reason;
    dv_str message;
};
struct record_end record_end_of(const struct record *record, dv_str container, uint32_t attempt);

/* The call of that method about the instance, the n-th of them from 0 on, or the last; NULL: there
 * is none. */
const struct record_call *record_call_of(const struct record *record, const char *method,
                                         dv_str container, uint32_t attempt, size_t n);
/* What the status of the container was at that time; NULL: it had none. */
const struct dv_api_container_status *record_status_at(const struct record *record,
                                                       dv_str container, uint64_t ms);
/* The first event whose message begins so; NULL: there is none. */
const struct record_event *record_event_of(const struct record *record, const char *reason,
                                           dv_str container, const char *begin);
/* The first text of a waiting state with that reason; empty: there is none. */
dv_str record_waiting(const struct record *record, dv_str container, const char *reason);

/* Small readers of JSON: absent is 0 or empty. */
dv_str record_str(const struct dv_json *json, const char *key);
double record_double(const struct dv_json *json, const char *key);

#endif
