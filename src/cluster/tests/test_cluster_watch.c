#include "support/dvtest.h"

#include <assert.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/defs.h"
#include "cluster/cluster.h"
#include "cluster/embedded.h"
#include "cluster/tests/test_cluster_fixture.h"
#include "resource/resource.h"

/* What a watcher was told, as text: "+c1@7 ~c1@8 -c1@9 |@9". */
struct told {
    struct dv_watcher watcher;
    struct dv_buf text;
    size_t n;
    size_t n_closed;
    size_t stop_after;  /* events; 0: never */
    size_t pause_after; /* the same */
    uint64_t last;
};

static void on_event(struct dv_watcher *watcher, enum dv_object_event event,
                     struct dv_object *object, uint64_t version)
{
    static const char signs[] = {[DV_OBJECT_ADDED] = '+',
                                 [DV_OBJECT_MODIFIED] = '~',
                                 [DV_OBJECT_DELETED] = '-',
                                 [DV_OBJECT_INITIAL_END] = '|'};
    struct told *told = DV_CONTAINER(watcher, struct told, watcher);

    if (told->text.n < 2000)
        dv_buf_printf(&told->text, "%c%.*s@%llu ", signs[event],
                      DV_FMT(object ? object->meta->name : DV_STR_NONE),
                      (unsigned long long)version);
    if (object && event != DV_OBJECT_INITIAL_END && watcher->since > 0) {
        assert_int_equal(object->version, version);
        assert_true(version > told->last); /* in order */
        told->last = version;
    }
    told->n++;
    if (told->n == told->pause_after)
        dv_watcher_pause(watcher);
    if (told->n == told->stop_after)
        dv_watcher_stop(watcher);
}

static void on_closed(struct dv_watcher *watcher)
{
    DV_CONTAINER(watcher, struct told, watcher)->n_closed++;
}

static void watch(struct fixture *fixture, struct told *told, uint64_t since, const char *labels,
                  const char *fields)
{
    struct dv_api_status *failure;

    dv_buf_init(&told->text, 4000);
    told->watcher.kind = dv_kind(DV_KIND_CONFIG_MAP);
    told->watcher.namespace = DV_STR("default");
    told->watcher.label_selector = dv_str_from_c(labels);
    told->watcher.field_selector = dv_str_from_c(fields);
    told->watcher.since = since;
    told->watcher.event = on_event;
    told->watcher.closed = on_closed;
    assert_true(dv_watcher_start(fixture->embedded, &told->watcher, fixture->arena, &failure));
    assert_int_equal(told->n, 0);
}

static void done(struct told *told)
{
    dv_watcher_stop(&told->watcher);
    dv_buf_fini(&told->text);
}

/* What was told, with versions counted from `base`. */
static void must_have_told(struct fixture *fixture, struct told *told, uint64_t base,
                           const char *expected)
{
    struct dv_buf wanted;

    dv_buf_init(&wanted, 4000);
    for (; *expected; expected++) {
        dv_buf_add_char(&wanted, *expected);
        if (*expected == '@') {
            dv_buf_add_u64(&wanted, base + (uint64_t)(expected[1] - '0'));
            expected++;
        }
    }
    settle(fixture);
    assert_string_equal(dv_buf_c(&told->text), dv_buf_c(&wanted));
    dv_buf_fini(&wanted);
}

static void make(struct fixture *fixture, const char *name)
{
    dv_str json = dv_str_printf(fixture->arena, "{\"metadata\":{\"name\":\"%s\"}}", name);

    (void)must(create(fixture, DV_KIND_CONFIG_MAP, "default", dv_str_to_c(json, fixture->arena)));
}

static void label(struct fixture *fixture, const char *name, const char *labels)
{
    dv_str json = dv_str_printf(fixture->arena, "{\"metadata\":{\"labels\":%s}}", labels);

    (void)must(patch(fixture, DV_KIND_CONFIG_MAP, "default", name, DV_PATCH_MERGE,
                     dv_str_to_c(json, fixture->arena)));
}

static void tells_what_happened_since(void **state)
{
    struct fixture *fixture = *state;
    uint64_t base = dv_embedded_version(fixture->embedded);
    struct told all = {0};
    struct told some = {0};
    struct told one = {0};

    make(fixture, "c0");                          /* 1 */
    watch(fixture, &all, base, "", "");           /* from the past */
    watch(fixture, &some, base + 1, "w=yes", ""); /* from now */
    watch(fixture, &one, base + 1, "", "metadata.name=c1");
    make(fixture, "c1");                     /* 2 */
    label(fixture, "c1", "{\"w\":\"yes\"}"); /* 3 */
    label(fixture, "c1", "{\"x\":\"1\"}");   /* 4 */
    label(fixture, "c1", "{\"w\":null}");    /* 5 */
    (void)must(create(fixture, DV_KIND_SECRET, "default", "{\"metadata\":{\"name\":\"s\"}}"));
    (void)must(del(fixture, DV_KIND_CONFIG_MAP, "default", "c1", NULL)); /* 7 */
    must_have_told(fixture, &all, base, "+c0@1 +c1@2 ~c1@3 ~c1@4 ~c1@5 -c1@7 ");
    must_have_told(fixture, &some, base, "+c1@3 ~c1@4 -c1@5 ");
    must_have_told(fixture, &one, base, "+c1@2 ~c1@3 ~c1@4 ~c1@5 -c1@7 ");
    assert_int_equal(dv_watcher_version(&some.watcher), base + 7);
    done(&all);
    done(&some);
    done(&one);
}

static void tells_what_is_there_first(void **state)
{
    struct fixture *fixture = *state;
    uint64_t base = dv_embedded_version(fixture->embedded);
    struct told told = {0};
    struct told ended = {.watcher.wants_initial_end = true};

    make(fixture, "c0");
    make(fixture, "c1");
    watch(fixture, &told, 0, "", "");
    watch(fixture, &ended, 0, "", "");
    assert_int_equal(dv_watcher_version(&told.watcher), 0);
    make(fixture, "c2");
    must_have_told(fixture, &told, base, "+c0@1 +c1@2 +c2@3 ");
    must_have_told(fixture, &ended, base, "+c0@1 +c1@2 |@2 +c2@3 ");
    done(&told);
    done(&ended);
}

static void refuses_the_distant_past_and_bad_selectors(void **state)
{
    struct fixture *fixture = *state;
    struct dv_watcher watcher = {.kind = dv_kind(DV_KIND_CONFIG_MAP), .since = 1};
    struct dv_api_status *failure;
    uint64_t now;

    for (size_t i = 0; i < 30; i++)
        make(fixture, numbered(fixture, "c%zu", i));
    assert_false(dv_watcher_start(fixture->embedded, &watcher, fixture->arena, &failure));
    assert_int_equal(failure->code, 410);
    assert_str(failure->reason, "Expired");
    assert_true(dv_str_starts_with(failure->message, DV_STR("too old resource version: 1 (")));
    now = dv_embedded_version(fixture->embedded);
    reopen(fixture);
    watcher.since = now - 1;
    assert_false(dv_watcher_start(fixture->embedded, &watcher, fixture->arena, &failure));
    watcher.since = now; /* who has seen all goes on */
    assert_true(dv_watcher_start(fixture->embedded, &watcher, fixture->arena, &failure));
    dv_watcher_stop(&watcher);
    watcher.field_selector = DV_STR("spec.nope=1");
    assert_false(dv_watcher_start(fixture->embedded, &watcher, fixture->arena, &failure));
    assert_int_equal(failure->code, 400);
}

static int start_with_short_history(void **state)
{
    struct fixture *fixture;

    (void)start_on_disk(state);
    fixture = *state;
    fixture->options.n_history_max = 10;
    reopen(fixture);
    return 0;
}

static void who_cannot_keep_up_is_closed(void **state)
{
    struct fixture *fixture = *state;
    struct told slow = {.pause_after = 2};
    struct told back = {.pause_after = 2};
    uint64_t base = dv_embedded_version(fixture->embedded);

    watch(fixture, &slow, base, "", "");
    watch(fixture, &back, base, "", "");
    for (size_t i = 0; i < 5; i++)
        make(fixture, numbered(fixture, "a%zu", i));
    must_have_told(fixture, &back, base, "+a0@1 +a1@2 ");
    assert_int_equal(dv_watcher_version(&back.watcher), base + 2);
    dv_watcher_resume(&back.watcher);
    must_have_told(fixture, &back, base, "+a0@1 +a1@2 +a2@3 +a3@4 +a4@5 ");
    for (size_t i = 0; i < 20; i++)
        make(fixture, numbered(fixture, "b%zu", i));
    settle(fixture);
    assert_int_equal(slow.n_closed, 1);
    assert_true(slow.watcher.is_expired);
    assert_int_equal(slow.n, 2);
    assert_int_equal(back.n, 25);
    assert_int_equal(back.n_closed, 0);
    done(&slow);
    done(&back);
}

static void may_be_stopped_from_its_callback(void **state)
{
    struct fixture *fixture = *state;
    uint64_t base = dv_embedded_version(fixture->embedded);
    struct told told = {.stop_after = 1};
    struct told first = {.stop_after = 1};

    make(fixture, "c0");
    watch(fixture, &first, 0, "", "");
    watch(fixture, &told, base + 1, "", "");
    make(fixture, "c1");
    make(fixture, "c2");
    settle(fixture);
    assert_int_equal(told.n, 1);
    assert_int_equal(first.n, 1);
    assert_int_equal(told.n_closed, 0);
    done(&told);
    done(&first);
}

static void ends_with_the_api(void **state)
{
    struct fixture *fixture = *state;
    struct told told = {0};

    watch(fixture, &told, 0, "", "");
    close_api(fixture);
    assert_int_equal(told.n_closed, 1);
    assert_false(told.watcher.is_expired);
    done(&told);
}

/* ---- whoever listens may close the API ---- */

struct closer {
    struct dv_watcher watcher;
    struct fixture *fixture;
    bool is_closed;
};

static void on_api_closed(void *ctx)
{
    *(bool *)ctx = true;
}

static void close_from_event(struct dv_watcher *watcher, enum dv_object_event event,
                             struct dv_object *object, uint64_t version)
{
    struct closer *closer = DV_CONTAINER(watcher, struct closer, watcher);

    (void)event;
    (void)object;
    (void)version;
    dv_embedded_close(closer->fixture->embedded, on_api_closed, &closer->is_closed);
    closer->fixture->embedded = NULL;
}

static bool is_api_closed(void *ctx)
{
    return ((const struct closer *)ctx)->is_closed;
}

static void the_api_may_be_closed_from_a_callback(void **state)
{
    struct fixture *fixture = *state;
    struct closer closer = {.fixture = fixture};
    struct told before = {0};
    struct told after = {0};
    struct dv_api_status *failure;

    watch(fixture, &before, 0, "", "");
    closer.watcher = (struct dv_watcher){.kind = dv_kind(DV_KIND_CONFIG_MAP),
                                         .since = dv_embedded_version(fixture->embedded),
                                         .event = close_from_event};
    assert_true(dv_watcher_start(fixture->embedded, &closer.watcher, fixture->arena, &failure));
    watch(fixture, &after, 0, "", "");
    make(fixture, "c0");
    run_until(fixture, is_api_closed, &closer);
    assert_int_equal(before.n_closed, 1);
    assert_int_equal(after.n_closed, 1);
    assert_int_equal(after.n, 0);
    done(&before);
    done(&after);
}

/* ---- views ---- */

struct seen {
    struct dv_view *view;
    size_t n_came;
    size_t n_changed;
    size_t n_went;
    size_t n_synced;
    size_t n_at_sync;
    bool is_closing; /* closes itself at the next change */
};

static void on_changed(void *ctx, struct dv_object *old, struct dv_object *now)
{
    struct seen *seen = ctx;
    const struct dv_object *any = now ? now : old;

    assert(any);
    seen->n_came += !old;
    seen->n_went += !now;
    seen->n_changed += old && now;
    /* It is shown already. */
    assert_ptr_equal(dv_view_get(seen->view, any->meta->namespace, any->meta->name), now);
    if (seen->is_closing) {
        dv_view_close(seen->view);
        seen->view = NULL;
    }
}

static void on_synced(void *ctx)
{
    struct seen *seen = ctx;

    seen->n_synced++;
    seen->n_at_sync = dv_view_n(seen->view);
}

static void view(struct fixture *fixture, struct seen *seen, const char *labels)
{
    const struct dv_view_options options = {.kind = dv_kind(DV_KIND_CONFIG_MAP),
                                            .label_selector = dv_str_from_c(labels),
                                            .changed = on_changed,
                                            .synced = on_synced,
                                            .ctx = seen};
    struct dv_err err;

    seen->view = dv_view_open(fixture->cluster, &options, &err);
    assert_non_null(seen->view);
    assert_false(dv_view_is_synced(seen->view));
}

static void a_view_shows_what_it_has_told(void **state)
{
    struct fixture *fixture = *state;
    struct seen all = {0};
    struct seen some = {0};
    struct seen closing = {.is_closing = true};
    size_t at = 0;
    size_t n = 0;

    for (size_t i = 0; i < 1500; i++)
        make(fixture, numbered(fixture, "c%zu", i));
    view(fixture, &all, "");
    view(fixture, &some, "w=yes");
    view(fixture, &closing, "");
    (void)must(del(fixture, DV_KIND_CONFIG_MAP, "default", "c9", NULL));
    label(fixture, "c1", "{\"w\":\"yes\"}");
    label(fixture, "c2", "{\"w\":\"yes\"}");
    label(fixture, "c1", "{\"w\":null}");
    settle(fixture);
    assert_null(closing.view);
    assert_int_equal(closing.n_came, 1);
    assert_int_equal(all.n_synced, 1);
    assert_true(dv_view_is_synced(all.view));
    assert_int_equal(all.n_came, 1499 + all.n_went);
    assert_int_equal(dv_view_n(all.view), 1499);
    assert_int_equal(dv_view_n(some.view), 1);
    assert_int_equal(some.n_came, 2);
    assert_int_equal(some.n_went, 1);
    assert_non_null(dv_view_get(some.view, DV_STR("default"), DV_STR("c2")));
    while (dv_view_next(all.view, &at))
        n++;
    assert_int_equal(n, 1499);
    close_api(fixture); /* what it shows stays */
    assert_int_equal(dv_view_n(all.view), 1499);
    dv_view_close(all.view);
    dv_view_close(some.view);
}

static void a_view_refuses_a_bad_selector(void **state)
{
    struct fixture *fixture = *state;
    const struct dv_view_options options = {.kind = dv_kind(DV_KIND_CONFIG_MAP),
                                            .label_selector = DV_STR("a in ("),
                                            .changed = on_changed};
    struct dv_err err;

    assert_null(dv_view_open(fixture->cluster, &options, &err));
    assert_int_equal(err.code, DV_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tells_what_happened_since, start, end),
        cmocka_unit_test_setup_teardown(tells_what_is_there_first, start, end),
        cmocka_unit_test_setup_teardown(refuses_the_distant_past_and_bad_selectors,
                                        start_with_short_history, end),
        cmocka_unit_test_setup_teardown(who_cannot_keep_up_is_closed, start_with_short_history,
                                        end),
        cmocka_unit_test_setup_teardown(may_be_stopped_from_its_callback, start, end),
        cmocka_unit_test_setup_teardown(ends_with_the_api, start, end),
        cmocka_unit_test_setup_teardown(the_api_may_be_closed_from_a_callback, start, end),
        cmocka_unit_test_setup_teardown(a_view_shows_what_it_has_told, start, end),
        cmocka_unit_test_setup_teardown(a_view_refuses_a_bad_selector, start, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
