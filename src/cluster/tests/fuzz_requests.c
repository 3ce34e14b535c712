/* fuzz_requests.c - requests of all verbs on objects of all kinds: whatever they ask for, every row
 * that is stored afterwards is read, and written again it is the same row.
 *
 * An input is lines. Each is a verb (of `verbs`), a kind ('A' and on), a version ('0' and on), a
 * blank, and a document: the object, the patch, or the options of a deletion. 't' turns the clock
 * by as many seconds as its document says. */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/num.h"
#include "base/str.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/objects/readback.h"
#include "loop/loop.h"
#include "resource/resource.h"
#include "store/store.h"
#include "support/embedded_count.h"
#include "support/store_files.h"
#include "json/json.h"

#define WAIT_MS 60000u
#define N_LINES_MAX 24u
#define TURN_S_MAX 100000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TABLE_OBJECTS, TABLE_META };

static const char *const table_names[] = {[TABLE_OBJECTS] = "objects", [TABLE_META] = "meta"};
static const struct dv_store_schema schema = {.tables = table_names, .n_tables = 2};

static const struct {
    char letter;
    enum dv_verb verb;
    enum dv_subresource subresource;
    enum dv_patch_type patch;
} verbs[] = {
    {'c', DV_VERB_CREATE,            DV_SUB_NONE,     0                 },
    {'u', DV_VERB_UPDATE,            DV_SUB_NONE,     0                 },
    {'U', DV_VERB_UPDATE,            DV_SUB_STATUS,   0                 },
    {'j', DV_VERB_PATCH,             DV_SUB_NONE,     DV_PATCH_JSON     },
    {'m', DV_VERB_PATCH,             DV_SUB_NONE,     DV_PATCH_MERGE    },
    {'M', DV_VERB_PATCH,             DV_SUB_STATUS,   DV_PATCH_MERGE    },
    {'s', DV_VERB_PATCH,             DV_SUB_NONE,     DV_PATCH_STRATEGIC},
    {'S', DV_VERB_PATCH,             DV_SUB_STATUS,   DV_PATCH_STRATEGIC},
    {'a', DV_VERB_PATCH,             DV_SUB_NONE,     DV_PATCH_APPLY    },
    {'A', DV_VERB_PATCH,             DV_SUB_STATUS,   DV_PATCH_APPLY    },
    {'d', DV_VERB_DELETE,            DV_SUB_NONE,     0                 },
    {'D', DV_VERB_DELETE_COLLECTION, DV_SUB_NONE,     0                 },
    {'b', DV_VERB_CREATE,            DV_SUB_BINDING,  0                 },
    {'e', DV_VERB_CREATE,            DV_SUB_EVICTION, 0                 },
    {'f', DV_VERB_UPDATE,            DV_SUB_FINALIZE, 0                 },
};

struct world {
    struct dv_clock_virtual clock;
    struct dv_loop *loop;
    struct dv_store *store;
    struct dv_embedded *embedded;
    struct dv_arena *arena;
    char path[64]; /* of the store */
};

static void set_true(void *ctx)
{
    *(bool *)ctx = true;
}

static bool is_true(void *ctx)
{
    return *(const bool *)ctx;
}

static bool is_ready(void *ctx)
{
    struct world *world = ctx;

    return embedded_count(world->embedded, dv_kind(DV_KIND_NAMESPACE)) >= 4;
}

static void wait(struct world *world, bool (*is_met)(void *ctx), void *ctx)
{
    bool has_come = dv_loop_run_until(world->loop, is_met, ctx, WAIT_MS);

    assert(has_come); /* a request that is never answered */
}

/* ---- requests ---- */

struct ask {
    struct dv_request request;
    bool is_done;
};

static void on_done(struct dv_request *request, const struct dv_api_status *failure)
{
    (void)failure;
    ((struct ask *)request->ctx)->is_done = true;
}

/* A value of the kind, or of what the subresource takes; NULL when the document is none. */
static void *decode(const struct dv_request *request, const struct dv_json *doc,
                    struct dv_arena *arena)
{
    const struct dv_message *message = request->version->message;
    struct dv_err err;
    void *value;

    if (request->subresource == DV_SUB_BINDING)
        message = &dv_message_binding;
    else if (request->subresource == DV_SUB_EVICTION)
        message = &dv_message_eviction;
    value = dv_arena_alloc(arena, message->size, message->align);
    return dv_decode_json(message, doc, DV_UNKNOWN_DROP, arena, value, NULL, &err) ? value : NULL;
}

static bool fill(struct dv_request *request, dv_str document, struct dv_arena *arena)
{
    struct dv_err err;
    const struct dv_json *doc = dv_json_parse(document, NULL, arena, &err);
    struct dv_api_delete_options *options;

    if (request->verb == DV_VERB_DELETE || request->verb == DV_VERB_DELETE_COLLECTION) {
        options = DV_NEW(arena, struct dv_api_delete_options);
        request->delete_options = options;
        return !doc || dv_decode_json(&dv_message_delete_options, doc, DV_UNKNOWN_DROP, arena,
                                      options, NULL, &err);
    }
    if (!doc)
        return false;
    if (request->verb == DV_VERB_PATCH) {
        request->patch = doc;
        return true;
    }
    request->value = decode(request, doc, arena);
    return request->value != NULL;
}

/* So that the loop does not sleep while it is to turn. */
static void on_turn(struct dv_timer *timer)
{
    dv_timer_start(timer, timer->loop, dv_loop_now_ms(timer->loop), on_turn);
}

/* Asked once a turn: what is due begins in the first of them. */
static bool is_over(void *ctx)
{
    return ++*(unsigned *)ctx > 4;
}

static void turn(struct world *world, dv_str document)
{
    struct dv_timer timer = {0};
    unsigned n_turns = 0;
    uint64_t seconds;

    if (!dv_str_to_u64(document, &seconds))
        return;
    dv_clock_virtual_advance_ms(&world->clock, dv_u64_min(seconds, TURN_S_MAX) * 1000u);
    dv_timer_start(&timer, world->loop, dv_loop_now_ms(world->loop), on_turn);
    wait(world, is_over, &n_turns);
    dv_timer_cancel(&timer);
}

static void run_line(struct world *world, dv_str line)
{
    struct ask ask = {
        .request = {.namespace = DV_STR("default"), .done = on_done, .ctx = &ask}
    };
    const struct dv_kind *kind;
    size_t i = 0;

    if (line.n < 4)
        return;
    if (line.p[0] == 't') {
        turn(world, dv_str_slice(line, 4, line.n));
        return;
    }
    while (i < DV_COUNT(verbs) && verbs[i].letter != line.p[0])
        i++;
    if (i == DV_COUNT(verbs))
        return;
    kind = dv_kind((enum dv_kind_id)((uint8_t)(line.p[1] - 'A') % DV_N_KINDS));
    ask.request.verb = verbs[i].verb;
    ask.request.subresource = verbs[i].subresource;
    ask.request.patch_type = verbs[i].patch;
    ask.request.is_forced = true;
    ask.request.kind = kind;
    ask.request.version = &kind->versions[(uint8_t)(line.p[2] - '0') % kind->n_versions];
    if (!kind->is_namespaced)
        ask.request.namespace = DV_STR_NONE;
    if (ask.request.verb != DV_VERB_DELETE_COLLECTION &&
        (ask.request.verb != DV_VERB_CREATE || ask.request.subresource != DV_SUB_NONE))
        ask.request.name = DV_STR("x");
    if (!fill(&ask.request, dv_str_slice(line, 4, line.n), world->arena))
        return;
    dv_request_start(dv_embedded_cluster(world->embedded), &ask.request);
    wait(world, is_true, &ask.is_done);
}

/* ---- what is stored ---- */

static void on_damaged(void *ctx, const char *set_aside)
{
    (void)ctx;
    (void)set_aside;
    abort();
}

static void open_store(struct world *world)
{
    const struct dv_store_options options = {.schema = &schema, .damaged = on_damaged};
    struct dv_err err;

    world->store = dv_store_open(world->loop, dv_str_from_c(world->path), &options, &err);
    assert(world->store);
}

static void close_store(struct world *world)
{
    bool is_closed = false;

    dv_store_close(world->store, set_true, &is_closed);
    wait(world, is_true, &is_closed);
}

static const struct dv_kind *kind_of(dv_str key)
{
    for (size_t i = 0; i < DV_N_KINDS; i++) {
        const struct dv_kind *kind = dv_kind((enum dv_kind_id)i);

        if (dv_str_eq(kind->name, dv_str_slice(key, 0, dv_str_find_char(key, '/'))))
            return kind;
    }
    return NULL;
}

static bool check_row(void *ctx, const struct dv_store_row *row, struct dv_err *err)
{
    struct world *world = ctx;
    const struct dv_kind *kind = kind_of(row->key);
    bool is_same = kind && dv_readback_check(kind, row->key, row->value, world->arena, err);

    assert(is_same);
    return true;
}

/* What the next start would find. */
static void check_rows(struct world *world)
{
    struct dv_err err;
    bool is_loaded;

    open_store(world);
    is_loaded = dv_store_load(world->store, TABLE_OBJECTS, check_row, world, &err);
    assert(is_loaded);
    close_store(world);
}

/* ---- life ---- */

static void open_world(struct world *world)
{
    const struct dv_embedded_options options = {.table_objects = TABLE_OBJECTS,
                                                .table_meta = TABLE_META};
    struct dv_err err;

    dv_clock_virtual_init(&world->clock);
    world->loop = dv_loop_new(&world->clock.clock, &err);
    assert(world->loop);
    world->arena = dv_arena_new();
    /* In memory: how long a disk takes is no part of it. */
    (void)snprintf(world->path, sizeof(world->path), "/dev/shm/fuzz-requests-%d", (int)getpid());
    store_files_remove(world->path);
    open_store(world);
    world->embedded = dv_embedded_open(world->loop, world->store, &options, &err);
    assert(world->embedded);
    wait(world, is_ready, world);
}

static void close_api(struct world *world)
{
    bool is_closed = false;

    dv_embedded_close(world->embedded, set_true, &is_closed);
    wait(world, is_true, &is_closed);
    close_store(world);
}

static void close_world(struct world *world)
{
    store_files_remove(world->path);
    dv_loop_free(world->loop);
    dv_arena_free(world->arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world world = {0};
    dv_str rest = {(const char *)data, size};
    dv_str line;

    open_world(&world);
    for (unsigned i = 0; i < N_LINES_MAX && dv_str_split(&rest, '\n', &line); i++)
        run_line(&world, line);
    close_api(&world);
    check_rows(&world);
    close_world(&world);
    return 0;
}
