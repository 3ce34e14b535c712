/* wipe.c - ResourceSlices of a driver that does not serve are deleted.
 *
 *     PLANNED --30 s--> ASKING --done--> gone
 *        |              ^    | fails
 *        |         1, 2, 4 .. 300 s
 *        '--- the driver serves: gone (unless the API is being asked)
 *
 * When we start, one more such plan is for all drivers that have not registered by its end. The
 * reference deletes all slices of the node at once; but drivers on the Go helper publish them again
 * only half a minute later, and nothing could be scheduled meanwhile. The pods that are wait for
 * their drivers. After a boot it is the same: drivers come back as they do after a restart. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/map.h"
#include "base/num.h"
#include "claim/manager/claim_manager_state.h"
#include "resource/resource.h"

/* Each name has some hundred bytes, and each driver a socket on this node: 16 MiB are never
 * reached. */
#define SELECTOR_BYTES_MAX (16u * 1024u * 1024u)
/* A driver that is only restarted is back within this time. */
#define WIPE_DELAY_MS 30000u
#define RETRY_FIRST_MS 1000u
#define RETRY_MAX_MS 300000u
/* A pause is up to a fifth longer, so that nodes do not ask at the same moment. */
#define RETRY_JITTER_DIVISOR 5u
#define NOT_FOUND 404

struct wipe {
    struct dv_claim_manager *claims;
    dv_str driver;          /* empty: all drivers of the node that have not registered */
    dv_str selector;        /* of the last attempt */
    struct dv_arena *arena; /* of the selector */
    struct dv_timer timer;
    struct dv_request request;
    uint64_t pause_ms; /* the next one */
    bool is_asking;
    /* the driver came back while the API was being asked: a failure is not tried again */
    bool is_called_off;
    char text[];
};

static void ask(struct wipe *wipe);

static void end(struct wipe *wipe)
{
    struct dv_claim_manager *claims = wipe->claims;

    dv_timer_cancel(&wipe->timer);
    (void)dv_map_remove(&claims->wipes, wipe->driver);
    dv_arena_free(wipe->arena);
    free(wipe);
    dv_claim_manager_check_closed(claims);
}

static void on_timer(struct dv_timer *timer)
{
    ask(DV_CONTAINER(timer, struct wipe, timer));
}

static void start_timer(struct wipe *wipe, uint64_t ms)
{
    dv_timer_start(&wipe->timer, wipe->claims->loop, dv_loop_now_ms(wipe->claims->loop) + ms,
                   on_timer);
}

static void on_asked(struct dv_request *request, const struct dv_api_status *failure)
{
    struct wipe *wipe = DV_CONTAINER(request, struct wipe, request);
    struct dv_claim_manager *claims = wipe->claims;
    uint64_t pause_ms;

    wipe->is_asking = false;
    if (!failure || failure->code == NOT_FOUND) {
        dv_log(DV_LOG_INFO, "claim: ResourceSlices deleted", DV_F_STR("selector", wipe->selector),
               DV_F_U64("n", failure ? 0 : request->n_objects));
        end(wipe);
    } else if (wipe->is_called_off || claims->is_closing) {
        end(wipe);
    } else {
        pause_ms = wipe->pause_ms + dv_random_u64() % (wipe->pause_ms / RETRY_JITTER_DIVISOR + 1);
        dv_log(DV_LOG_WARN, "claim: cannot delete ResourceSlices; trying again",
               DV_F_STR("selector", wipe->selector), DV_F_STR("error", failure->message),
               DV_F_U64("retry_ms", pause_ms));
        wipe->pause_ms = dv_u64_min(wipe->pause_ms * 2, RETRY_MAX_MS);
        start_timer(wipe, pause_ms);
    }
}

/* Excludes the drivers that are registered, and those that were: they have plans of their own. */
static void add_others(const struct dv_claim_manager *claims, struct dv_buf *buf)
{
    const struct dv_map_entry *entry;
    dv_str name;

    for (size_t at = 0; dv_dra_next_name(claims->drivers, &at, &name);)
        dv_buf_printf(buf, ",spec.driver!=%.*s", DV_FMT(name));
    for (size_t at = 0; (entry = dv_map_next(&claims->wipes, &at)) != NULL;)
        if (entry->key.n > 0 && !dv_dra_is_known(claims->drivers, entry->key))
            dv_buf_printf(buf, ",spec.driver!=%.*s", DV_FMT(entry->key));
}

/* Selects the slices of this node and this driver; or those of all drivers that have not registered
 * until now. */
static dv_str make_selector(struct wipe *wipe)
{
    const struct dv_claim_manager *claims = wipe->claims;
    struct dv_buf buf;
    dv_str selector;

    dv_buf_init(&buf, SELECTOR_BYTES_MAX);
    if (wipe->driver.n > 0)
        dv_buf_printf(&buf, "spec.driver=%.*s,", DV_FMT(wipe->driver));
    dv_buf_printf(&buf, "spec.nodeName=%.*s", DV_FMT(claims->options.node_name));
    if (wipe->driver.n == 0 && !claims->options.is_strict)
        add_others(claims, &buf);
    assert(!buf.is_over); /* a name left out would have its slices deleted */
    dv_arena_reset(wipe->arena);
    selector = dv_str_copy(dv_buf_str(&buf), wipe->arena);
    dv_buf_fini(&buf);
    return selector;
}

static void ask(struct wipe *wipe)
{
    wipe->is_asking = true;
    wipe->selector = make_selector(wipe);
    wipe->request = (struct dv_request){
        .verb = DV_VERB_DELETE_COLLECTION,
        .kind = dv_kind(DV_KIND_SLICE),
        .field_selector = wipe->selector,
        .done = on_asked,
    };
    dv_request_start(wipe->claims->options.cluster, &wipe->request);
}

static struct wipe *new_wipe(struct dv_claim_manager *claims, dv_str driver)
{
    struct wipe *wipe = dv_alloc(sizeof(*wipe) + driver.n + 1);

    if (driver.n > 0)
        memcpy(wipe->text, driver.p, driver.n);
    wipe->claims = claims;
    wipe->driver = (dv_str){wipe->text, driver.n};
    wipe->arena = dv_arena_new();
    wipe->pause_ms = RETRY_FIRST_MS;
    (void)dv_map_set(&claims->wipes, wipe->driver, wipe);
    return wipe;
}

void dv_claim_manager_evaluate(struct dv_claim_manager *claims, dv_str driver)
{
    struct wipe *wipe = dv_map_get(&claims->wipes, driver);

    if (!claims->options.cluster || driver.n == 0)
        return;
    switch (dv_dra_evaluate(claims->drivers, driver, wipe && !wipe->is_called_off)) {
    case DV_DRA_WIPE_KEEP:
        break;
    case DV_DRA_WIPE_CANCEL:
        if (wipe && wipe->is_asking)
            wipe->is_called_off = true;
        else if (wipe)
            end(wipe);
        break;
    case DV_DRA_WIPE_PLAN:
        if (wipe)
            /* the request is still under way, and is tried again when it fails */
            wipe->is_called_off = false;
        else
            start_timer(new_wipe(claims, driver), WIPE_DELAY_MS);
        break;
    }
}

void dv_claim_manager_wipe_node(struct dv_claim_manager *claims)
{
    struct wipe *wipe;

    if (!claims->options.cluster)
        return;
    wipe = new_wipe(claims, DV_STR(""));
    if (claims->options.is_strict)
        ask(wipe);
    else
        start_timer(wipe, WIPE_DELAY_MS);
}

void dv_claim_manager_stop_wiping(struct dv_claim_manager *claims)
{
    const struct dv_map_entry *entry;

    for (size_t at = 0; (entry = dv_map_next(&claims->wipes, &at)) != NULL;) {
        struct wipe *wipe = entry->value;

        if (wipe->is_asking)
            dv_request_cancel(claims->options.cluster, &wipe->request);
        else
            end(wipe);
    }
}
