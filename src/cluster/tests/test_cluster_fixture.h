/* test_cluster_fixture.h - the embedded API on a store in memory or on the disk, asked by whole
 * calls. */
#ifndef DV_CLUSTER_TEST_CLUSTER_FIXTURE_H
#define DV_CLUSTER_TEST_CLUSTER_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "resource/resource.h"
#include "support/test_store.h"

struct dv_arena;
struct dv_loop;
struct dv_store;

struct fixture {
    struct dv_clock_virtual clock;
    struct dv_loop *loop;
    struct dv_store *store;
    struct test_store_faults faults;
    struct dv_embedded_options options;
    struct dv_embedded *embedded;
    struct dv_cluster *cluster;
    struct dv_arena *arena; /* for what tests make; until the end */
    char dir[64];           /* empty: in memory */
    char path[100];
};

int start(void **state);             /* in memory */
int start_on_disk(void **state);     /* in a directory of its own */
int start_without_api(void **state); /* in memory, and only the store */
int end(void **state);

void open_api(struct fixture *fixture); /* and waits for its namespaces */
void close_api(struct fixture *fixture);
/* Both the API and the store, from what is on the disk. */
void reopen(struct fixture *fixture);
void stop(struct fixture *fixture);  /* the first half of it */
void go_on(struct fixture *fixture); /* and the second */

/* What a request was answered. */
struct reply {
    int code; /* 0: success; else that of the Status */
    const char *reason;
    const char *message;
    struct dv_object *object; /* until the end of the test */
    size_t n_objects;
    bool is_created;
    bool is_removed;
    size_t n_warnings;
    const char *warning; /* the first */
};

/* Runs the loop until it is answered. */
struct reply ask(struct fixture *fixture, struct dv_request *request);
struct reply get(struct fixture *fixture, enum dv_kind_id kind, const char *namespace,
                 const char *name);
/* The object as JSON in the preferred version; metadata.name may be there or not. */
struct reply create(struct fixture *fixture, enum dv_kind_id kind, const char *namespace,
                    const char *json);
struct reply update(struct fixture *fixture, enum dv_kind_id kind, const char *namespace,
                    const char *name, const char *json);
struct reply update_status(struct fixture *fixture, enum dv_kind_id kind, const char *namespace,
                           const char *name, const char *json);
struct reply patch(struct fixture *fixture, enum dv_kind_id kind, const char *namespace,
                   const char *name, enum dv_patch_type type, const char *json);
/* options: DeleteOptions as JSON, or NULL. */
struct reply del(struct fixture *fixture, enum dv_kind_id kind, const char *namespace,
                 const char *name, const char *options);

/* Fails the test unless it succeeded. */
struct dv_object *must(struct reply reply);
/* Fails the test unless it failed like that; `message` NULL: any. */
void must_fail(struct reply reply, int code, const char *reason, const char *message);

/* What a request is made of: decoded, in the fixture's arena. */
const void *value_of(struct fixture *fixture, enum dv_kind_id kind, const char *json);
struct dv_json *json_of(struct fixture *fixture, const char *json);
const struct dv_api_delete_options *options_of(struct fixture *fixture, const char *json);
/* The object as JSON, until the end of the test. */
const char *text_of(struct fixture *fixture, const struct dv_object *object);

bool exists(struct fixture *fixture, enum dv_kind_id kind, const char *namespace, const char *name);
/* A text with the number in it, until the end of the test. */
const char *numbered(struct fixture *fixture, const char *fmt, size_t i)
    __attribute__((format_arg(2)));

/* Runs until nothing is due: everything that was begun has ended. */
void settle(struct fixture *fixture);
/* Turns the clock, in steps, and settles after each. */
void pass(struct fixture *fixture, uint64_t ms);
void run_until(struct fixture *fixture, bool (*is_met)(void *ctx), void *ctx);

#define CLAIM_SPEC                                                                                 \
    "\"spec\":{\"devices\":{\"requests\":[{\"name\":\"r0\",\"exactly\":{\"deviceClassName\":"      \
    "\"gpu\"}}]}}"
#define POD_SPEC                                                                                   \
    "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"registry.example/pause:1\"}]}"

#endif
